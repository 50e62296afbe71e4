"""reward_client.py REWARD ARG... - what a trainer needs to score kernels: the standard library.

Starts the service (in a real one: make -s reward), sends two requests at once, and takes the answers by
their ids.  Exits with 0 if they are what the pretend steps of tests/e2e/reward.sh say.
"""
import json
import subprocess
import sys


class Reward:
    def __init__(self, command):
        self.service = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.number = 0

    def scores(self, requests):
        """The answers to [{"task": ..., "answer": ...}, ...], in order.  `reward` is None if it says nothing."""
        for request in requests:
            self.number += 1
            self.service.stdin.write(json.dumps({**request, "id": self.number}) + "\n")
        self.service.stdin.flush()
        answers = [json.loads(self.service.stdout.readline()) for _ in requests]
        return [a for a in sorted(answers, key=lambda a: a["id"])]


reward = Reward(sys.argv[1:])
code = "Here it is.\n```cuda\n// ratio 2.5\nextern \"C\" void launch() {}\n```\n"
good, bad = reward.scores([{"task": "l1_019_relu", "answer": code}, {"task": "l1_019_relu", "answer": "No."}])
sys.exit(0 if (good["reward"], bad["reward"], bad["verdict"]) == (2.5, 0, "no-code") else f"{good} {bad}")
