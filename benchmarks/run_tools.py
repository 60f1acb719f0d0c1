"""The conversation's two tools as a plugin of the worker that benchmarks/runs.py starts."""

from benchmarks.conversation import today, weather
from llmbroker import function

PLUGIN = "bench"
TOOLS = (function(effect="pure")(today), function(effect="pure")(weather))
