"""How many examples: few and always the same, or with HYPOTHESIS_PROFILE=long many new ones.

HYPOTHESIS_EXAMPLES=300 asks for another number.
"""

import os

import pytest
from hypothesis import HealthCheck, Phase, settings

# A world takes a while to make, and the machine may be busy: neither is an error of the law.
PATIENT = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
    "print_blob": True,
    # To explain a failure takes minutes of small frames; to shrink it is enough.
    "phases": [Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    "report_multiple_bugs": False,
}
settings.register_profile("quick", max_examples=5, derandomize=True, **PATIENT)
settings.register_profile(
    "long", max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "1000")), **PATIENT
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.fixture(autouse=True)
def quiet(caplog):
    """Every frame here is small, and `fit` would say so thousands of times."""
    caplog.set_level("ERROR", "dear_plugin")
