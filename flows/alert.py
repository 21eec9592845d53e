"""What went wrong, kept where people look; the automations of prefect.yaml start it."""

from __future__ import annotations

from prefect import flow

from tasks.build import keep_alert


@flow(name="alert", flow_run_name="alert: {what}")
def alert(what: str, subject: str = "", detail: str = "") -> str:
    """Write one line to HADES_HOME/logs/alerts.jsonl and a page to the Prefect UI.

    Args:
        what: what happened, in a few words
        subject: the run or the rules it is about
        detail: a message, or the page that says more
    """
    return keep_alert(what, subject, detail)
