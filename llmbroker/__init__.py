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
    LimitExceededError,
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
from llmbroker.prompts.errors import (
    TemplateRenderError,
    TemplateSyntaxError,
    UnknownFunctionError,
)
from llmbroker.prompts.functions import KernelFunction
from llmbroker.prompts.kernel import Kernel, KernelTools
from llmbroker.prompts.limits import TemplateLimits
from llmbroker.prompts.native import kernel_function
from llmbroker.prompts.plan import Plan, PlanStep
from llmbroker.prompts.results import FunctionResult
from llmbroker.prompts.segments import Origin, RenderedMessage, RenderedPrompt, Segment
from llmbroker.prompts.template import PromptTemplate
from llmbroker.prompts.variables import PromptVariable
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
from llmbroker.wire.deltas import Delta

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
    "Delta",
    "DictSecrets",
    "DirectClient",
    "DirectResult",
    "EmptyRegistryError",
    "EnvironmentSecrets",
    "Function",
    "FunctionResult",
    "InMemoryRegistry",
    "InMemoryStore",
    "InvalidProviderResponseError",
    "Kernel",
    "KernelFunction",
    "KernelTools",
    "KeySource",
    "KeyUnavailableError",
    "LLMBrokerError",
    "LLMConfig",
    "LLMRequestError",
    "LLMTimeoutError",
    "LimitExceededError",
    "MissingKey",
    "MissingKeyError",
    "ModelRetry",
    "ModelState",
    "ModelStats",
    "NoLLMAvailableError",
    "Origin",
    "Plan",
    "PlanStep",
    "PromptTemplate",
    "PromptVariable",
    "ProviderError",
    "RateLimitError",
    "RenderedMessage",
    "RenderedPrompt",
    "Reply",
    "RequestRefusedError",
    "Segment",
    "Snapshot",
    "StopReason",
    "Stream",
    "StreamInterruptedError",
    "TemplateLimits",
    "TemplateRenderError",
    "TemplateSyntaxError",
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
    "UnknownFunctionError",
    "UnknownModelError",
    "Usage",
    "arun_tool_loop",
    "function",
    "kernel_function",
    "run_tool_loop",
]
