// What a turn spent, as bars: its budget, and each stage's share of the time.

import { bar, count, el } from "./dom.js";

export function spent(answer) {
  const { telemetry, plan, tokens } = answer;
  const slowest = Math.max(...telemetry.stages.map((stage) => stage.ms), 0.001);
  const budget = plan && [
    bar("reads", telemetry.reads, plan.budget.docs_max, `${count(telemetry.reads)} of ${count(plan.budget.docs_max)}`),
    bar("time", telemetry.ms, plan.budget.latency_ms, `${telemetry.ms.toFixed(1)} of ${count(plan.budget.latency_ms)} ms`),
    tokens && bar("prompt", tokens.prompt, plan.budget.tokens_max ?? tokens.prompt, `${count(tokens.prompt)} tokens`),
  ];
  return el("div", { class: "spent" }, budget, el("h3", {}, "Stages"), telemetry.stages.map((stage) =>
    bar(stage.name, stage.ms, slowest, `${stage.ms.toFixed(1)} ms · ${stage.in ?? 0} → ${stage.out ?? 0}${stage.capped ? " · capped" : ""}`)));
}
