"""The practice model: a stand-in for a language model where none is at hand.

A small deterministic OpenAI-compatible server. It recognises three kinds of question (the
date, the weather in a city, arithmetic) in English, Uzbek and Russian, asks for the declared
tools that fit, one per turn, and answers from their results. It understands nothing else, and
calls itself a practice model wherever its name appears.

    python -m broker_project.local.practice_model --port 0
"""

MODEL = "practice-model"
NAME = "Practice model"
