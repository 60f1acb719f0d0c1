# One image for web and worker; compose.yaml gives each its command.
# Not built in CI: there is no Docker where this project is made. Kept plain for that reason.
FROM python:3.13-slim

ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1
WORKDIR /app

COPY requirements.txt .
RUN pip install --requirement requirements.txt

COPY manage.py ./
COPY llmbroker llmbroker
COPY tenants tenants
COPY journal journal
COPY agents agents
COPY broker_project broker_project

RUN useradd --no-create-home broker
USER broker
EXPOSE 8000
