"""llmbroker: many OpenAI-compatible models behind one reliable ``chat``.

    import llmbroker

    broker = llmbroker.Broker()
    print(broker.ask("Explain decorators in one sentence").text)

Works alone (keys from the environment, journal in memory) or inside a host that implements
the ports of ``llmbroker.ports``.
"""

from llmbroker.broker import AsyncBroker
from llmbroker.caller import AsyncCaller
from llmbroker.direct import AsyncDirectClient
from llmbroker.environment import EnvironmentSecrets
from llmbroker.errors import (
    AuthError,
    ConnectionFailedError,
    ContentPolicyError,
    ContextLengthError,
    EmptyRegistryError,
    InvalidProviderResponseError,
    KeyUnavailableError,
    LLMBrokerError,
    LLMRequestError,
    LLMTimeoutError,
    MissingKeyError,
    NoLLMAvailableError,
    ProviderError,
    RateLimitError,
    RequestRefusedError,
    StreamInterruptedError,
    ToolLoopLimitError,
    UnknownCallError,
    UnknownModelError,
)
from llmbroker.memory import DictSecrets, InMemoryRegistry, InMemoryStore
from llmbroker.models import ApiKey, Call, CallStatus, KeySource, LLMConfig, Usage
from llmbroker.reply import AsyncReply, DirectResult, Reply
from llmbroker.snapshot import MissingKey, ModelState, ModelStats, Snapshot
from llmbroker.stream import AsyncStream
from llmbroker.sync import Broker, Caller, DirectClient, Stream
from llmbroker.tools.context import ToolContext
from llmbroker.tools.function import Function, function
from llmbroker.tools.limits import StopReason, ToolLoopStoppedError
from llmbroker.tools.loop import ToolCall, ToolLoop
from llmbroker.tools.outcomes import (
    ArgumentProblem,
    BadArgumentsError,
    ModelRetry,
    ToolFailed,
    ToolStatus,
)
from llmbroker.tools.run import arun_tool_loop, run_tool_loop
from llmbroker.tools.steps import ToolResult, ToolStep
from llmbroker.transport import Timeouts

__all__ = [
    "ApiKey",
    "ArgumentProblem",
    "AsyncBroker",
    "AsyncCaller",
    "AsyncDirectClient",
    "AsyncReply",
    "AsyncStream",
    "AuthError",
    "BadArgumentsError",
    "Broker",
    "Call",
    "CallStatus",
    "Caller",
    "ConnectionFailedError",
    "ContentPolicyError",
    "ContextLengthError",
    "DictSecrets",
    "DirectClient",
    "DirectResult",
    "EmptyRegistryError",
    "EnvironmentSecrets",
    "Function",
    "InMemoryRegistry",
    "InMemoryStore",
    "InvalidProviderResponseError",
    "KeySource",
    "KeyUnavailableError",
    "LLMBrokerError",
    "LLMConfig",
    "LLMRequestError",
    "LLMTimeoutError",
    "MissingKey",
    "MissingKeyError",
    "ModelRetry",
    "ModelState",
    "ModelStats",
    "NoLLMAvailableError",
    "ProviderError",
    "RateLimitError",
    "Reply",
    "RequestRefusedError",
    "Snapshot",
    "StopReason",
    "Stream",
    "StreamInterruptedError",
    "Timeouts",
    "ToolCall",
    "ToolContext",
    "ToolFailed",
    "ToolLoop",
    "ToolLoopLimitError",
    "ToolLoopStoppedError",
    "ToolResult",
    "ToolStatus",
    "ToolStep",
    "UnknownCallError",
    "UnknownModelError",
    "Usage",
    "arun_tool_loop",
    "function",
    "run_tool_loop",
]
