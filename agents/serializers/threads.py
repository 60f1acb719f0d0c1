"""Threads and what is said in them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from agents.messages import MAX_MESSAGES, MessageField
from agents.models import Thread, ThreadMessage
from agents.serializers.values import Metadata
from tenants.serializers_base import StrictSerializer


class ThreadInput(StrictSerializer):
    """A thread to begin."""

    messages = serializers.ListField(child=MessageField(), required=False, max_length=MAX_MESSAGES)
    metadata = Metadata(required=False)


class ThreadOutput(serializers.ModelSerializer[Thread]):
    """A thread."""

    object = serializers.CharField(default="thread", read_only=True)

    class Meta:
        model = Thread
        fields = ("id", "object", "metadata", "created_at")
        read_only_fields = fields


class ThreadMessageInput(StrictSerializer):
    """Something to say: a message as models take it."""

    message = MessageField()


class ThreadMessageOutput(serializers.ModelSerializer[ThreadMessage]):
    """Something that was said; ``run_id`` is the run that it came with, or from."""

    object = serializers.CharField(default="thread.message", read_only=True)
    message = MessageField()

    class Meta:
        model = ThreadMessage
        fields: Any = ("id", "object", "number", "message", "run_id", "created_at")
        read_only_fields = fields
