# One image for every Airflow process of docker-compose.yaml: Daybook, its pins, the Celery executor and S3.
FROM python:3.11-slim-bookworm

ENV AIRFLOW_HOME=/opt/daybook \
    PYTHONPATH=/opt/daybook \
    PYTHONUNBUFFERED=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1

# What runs may write its own state and logs, and nothing of the program.
RUN useradd --uid 50000 --create-home --shell /usr/sbin/nologin daybook \
 && install --directory --owner=daybook --group=daybook --mode=0700 \
      /var/lib/daybook /var/lib/daybook/logs /var/lib/daybook/auth

WORKDIR /opt/daybook

# Two steps, so that a change of the program does not install everything again. Everything is pinned and listed,
# so nothing is resolved here.
COPY requirements.txt requirements-celery.txt ./
RUN pip install --no-deps -r requirements.txt \
 && pip install --no-deps -r requirements-celery.txt \
 && pip check

COPY airflow.cfg LICENSE ./
COPY config config
COPY sql sql
COPY plugins plugins
COPY include include
COPY dags dags

RUN python -m compileall -q include dags plugins config

USER daybook
