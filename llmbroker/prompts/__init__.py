"""Prompt templates, and the Kernel that makes functions of prompts and of Python alike."""
