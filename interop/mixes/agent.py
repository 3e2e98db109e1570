#!/usr/bin/env python3
"""An agent that does what a prompt or an extension method tells it to, over JSON lines.

It speaks both versions of the protocol by not looking: what it answers is the same.
"""

import json
import os
import sys
import threading

out_lock = threading.Lock()


def write(message):
    line = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False)
    with out_lock:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def result(ident, value):
    write({"id": ident, "result": value})


def error(ident, code, message, **more):
    write({"id": ident, "error": {"code": code, "message": message, **more}})


def update(session, text):
    content = {"type": "text", "text": text}
    write({"method": "session/update", "params": {
        "sessionId": session, "update": {"sessionUpdate": "agent_message_chunk", "content": content}}})


class Agent:
    def __init__(self):
        self.sessions = 0
        self.asked = {}     # our request -> what to do with its answer
        self.waiting = {}   # id of a prompt -> its session
        self.next = 0

    def ask(self, method, params, then):
        self.next += 1
        ident = f"agent-{self.next}"
        self.asked[ident] = then
        write({"id": ident, "method": method, "params": params})
        return ident

    def answered(self, message):
        then = self.asked.pop(message["id"], None)
        if then:
            then(message)

    def relay(self, ident):
        """Answers `ident` with whatever comes back."""
        def then(answer):
            write({"id": ident, **{k: v for k, v in answer.items() if k in ("result", "error")}})
        return then

    def request(self, ident, method, params):
        if method == "initialize":
            version = min(params["protocolVersion"], 2)
            if "refuse" in params:
                return error(ident, 4711, "not today", data={"retry": [1]}, extra=True)
            common = {"protocolVersion": version, "_meta": {"seen": params}, "more": None}
            if version == 1:
                return result(ident, {**common, "agentCapabilities": {"xtra": 1}, "authMethods": []})
            return result(ident, {**common, "info": {"name": "mixes", "version": "1"}, "capabilities": {"xtra": 1}})
        if method == "session/new":
            self.sessions += 1
            return result(ident, {"sessionId": f"s{self.sessions}", "_meta": {"k": 1}, "more": [1.0]})
        if method == "session/prompt":
            return self.prompt(ident, params)
        if method == "_mix/echo":
            return result(ident, params)
        if method == "_mix/null":
            return result(ident, None)
        if method == "_mix/fail":
            return error(ident, **params)
        if method == "_mix/back":
            self.ask("_mix/client", params, self.relay(ident))
            return None
        if method == "_mix/back_cancelled":
            asked = self.ask("_mix/slow", params, self.relay(ident))
            return write({"method": "$/cancel_request", "params": {"requestId": asked}})
        if method == "_mix/wait":
            self.waiting[ident] = None
            return None
        return error(ident, -32601, "Method not found", data=method)

    def prompt(self, ident, params):
        session = params["sessionId"]
        verb, _, rest = params["prompt"][0]["text"].partition(" ")
        if verb == "stream":
            for n in range(int(rest)):
                update(session, str(n))
        elif verb == "ask":
            options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
            call = {"toolCallId": "call-1", "title": "a tool"}

            def then(answer):
                update(session, json.dumps(answer.get("result", answer.get("error"))))
                result(ident, {"stopReason": "end_turn"})
            self.ask("session/request_permission",
                     {"sessionId": session, "toolCall": call, "title": "a tool",
                      "subject": {"type": "tool_call", "toolCall": call}, "options": options}, then)
            return
        elif verb == "wait":
            self.waiting[ident] = session
            return
        elif verb == "die":
            sys.stdout.flush()
            os._exit(7)
        result(ident, {"stopReason": "end_turn"})

    def notified(self, method, params):
        if method == "session/cancel":
            for ident, session in list(self.waiting.items()):
                if session == params["sessionId"]:
                    del self.waiting[ident]
                    result(ident, {"stopReason": "cancelled"})
        elif method == "$/cancel_request":
            ident = params["requestId"]
            if ident in self.waiting:
                del self.waiting[ident]
                error(ident, -32800, "cancelled here", data={"by": "agent"})
        elif method == "_mix/note":
            write({"method": "_mix/noted", "params": params})


def main():
    agent = Agent()
    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message:
            agent.answered(message)
        elif "id" in message:
            agent.request(message["id"], message["method"], message.get("params"))
        else:
            agent.notified(message["method"], message.get("params"))


if __name__ == "__main__":
    main()
