"""The section `learning:` of hades.yaml: how far judged answers move weights, and how much answers explore."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from hades.settings.hirag import Section
from schemas.graph_types import MAX_LEARNED


class LearningSettings(Section):
    """What may be learned from `query_logs`, and how carefully."""

    rate: float = Field(0.25, gt=0.0, le=1.0, description="one judged answer moves the logit of a weight by less")
    radius: float = Field(
        1.5, gt=0.0, le=MAX_LEARNED, description="judged answers together move the logit of a weight by at most this"
    )
    held_out: float = Field(0.2, ge=0.05, le=0.5, description="share of judged questions that never teach, only test")
    least_held_out: int = Field(5, ge=2, description="judged questions held out before anything learned is used")
    position_power: float = Field(
        0.5, ge=0.0, le=2.0, description="a result at rank r is taken to be looked at with the chance r ** -this"
    )
    explore: float = Field(
        0.0, ge=0.0, le=0.5, description="chance that two neighbouring results change places, logged; 0: never"
    )
    explore_seed: int = Field(0, ge=0, description="another seed, other neighbours of the same question")

    @model_validator(mode="after")
    def _steps_fit_the_radius(self) -> Self:
        if self.rate > self.radius:
            raise ValueError(f"rate {self.rate} is larger than radius {self.radius}; one step would leave the region")
        return self
