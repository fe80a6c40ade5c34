"""The files by which a server is watched, read: docs/metrics.md, the alert rules and the dashboard."""
import json
import os
import re

import yaml

METRIC = r"\b(?:softlookup|process)_[a-z0-9_]+"


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def documented_metrics(root):
    """{name: type} of the tables of docs/metrics.md."""
    return dict(re.findall(rf"^\| `({METRIC})` \| (\w+) \|", read(root, "docs/metrics.md"), re.MULTILINE))


def series_of(metrics):
    """The names under which Prometheus keeps them: a histogram's have endings."""
    return {name + ending for name, kind in metrics.items()
            for ending in (("_bucket", "_sum", "_count") if kind == "histogram" else ("",))}


def alert_rules(root):
    groups = yaml.safe_load(read(root, "docker/prometheus/alerts.yml"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def dashboard(root):
    return json.loads(read(root, "docker/grafana/dashboard.json"))


def dashboard_queries(root):
    """(where, PromQL) of everything that the dashboard asks, its variables filled in."""
    board = dashboard(root)
    asked = [(f"panel {panel['title']!r}, {target['refId']}", target["expr"])
             for panel in board["panels"] for target in panel.get("targets", ())]
    asked += [(f"annotation {one['name']!r}", one["expr"]) for one in board["annotations"]["list"]]
    for where, query in asked:
        for variable, value in (("$__rate_interval", "1m"), ("$instance", ".*"), ("$method", ".*")):
            query = query.replace(variable, value)
        yield where, query
