# The first command of the README in an image: docker build -t ce-harness . && docker run --rm ce-harness
# Results stay with -v "$PWD/results:/work/results"; settings are added behind: docker run ce-harness +experiment=compas model=rf
FROM python:3.11-slim
RUN apt-get update && apt-get install -y --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/*
WORKDIR /work
RUN pip install --no-cache-dir uv
COPY pyproject.toml uv.lock .python-version README.md LICENSE ./
COPY harness ./harness
COPY methods ./methods
COPY metrics ./metrics
COPY conf ./conf
COPY results/published ./results/published
COPY results/published ./harness/published
RUN uv sync --locked --no-group dev
ENTRYPOINT ["uv", "run", "--no-sync", "python", "-m", "harness"]
CMD ["+experiment=compas"]
