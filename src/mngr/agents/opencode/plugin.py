"""The plugin that OpenCode loads from the agent's configuration directory.

OpenCode stores its conversations in a database. The plugin writes messages, questions and usage to
a file as they happen, one JSON object per line, so that a reading requires only the file's end.
"""

from __future__ import annotations

import json

PLUGIN = r"""// Written by mngr when the agent is created.
import { appendFileSync } from "node:fs"

const FILE = @FILE@
const MARK = "MNGR_OPENCODE"

export const Mngr = async () => {
  // Another OpenCode that the agent starts has this configuration and the mark; it reports nothing.
  const outer = process.env[MARK]
  if (outer && outer !== String(process.pid)) return {}
  process.env[MARK] = String(process.pid)

  const roles = new Map(), written = new Map(), asked = new Map()
  const children = new Set(), failed = new Set(), begun = new Set()
  const keep = (kind, session, fields) => {
    const child = children.has(session) ? { child: true } : {}
    const line = { kind, time: Date.now() / 1000, session: session || "", ...child, ...fields }
    try { appendFileSync(FILE, JSON.stringify(line) + "\n", { mode: 0o600 }) } catch {}
  }
  const state = (word, session, text, more) => {
    keep("state", session, { state: word, text: String(text || "").slice(0, 500), ...more })
  }
  const once = (kind, session, id, value) => {
    const text = JSON.stringify(value)
    const print = typeof Bun === "undefined" ? text : Bun.hash(text)
    if (written.get(id) === print) return
    written.set(id, print)
    keep(kind, session, { value })
  }
  const question = (request) => {
    const what = request.metadata?.command || (request.patterns || []).join(", ")
    return `${request.permission || "question"}: ${what}`
  }
  const settle = (session, id) => {
    asked.delete(id)
    const [next] = asked.values()
    if (next) state("permission", session, next)
    else state("busy", session)
  }
  const final = (part) => {
    if (part.type === "text" || part.type === "reasoning")
      return part.time?.end || roles.get(part.messageID) === "user"
    if (part.type === "tool") return ["completed", "error"].includes(part.state?.status)
    return true
  }

  const handlers = {
    "session.created": ({ info }) => handlers["session.updated"]({ info }),
    "session.updated": ({ info }) => {
      if (info.parentID) children.add(info.id)
      // Leave out what changes at each step.
      const { tokens, cost, summary, ...value } = info
      const created = info.time?.created || 0
      once("session", info.id, info.id, { ...value, time: { created, updated: created } })
    },
    "message.updated": ({ info }) => {
      // The failure of a turn is kept until the next message.
      if (info.role === "user" && !roles.has(info.id)) failed.delete(info.sessionID)
      roles.set(info.id, info.role)
      once("message", info.sessionID, info.id, { ...info, summary: undefined })
      const t = info.tokens
      if (info.role === "assistant" && !info.time?.completed) begun.add(info.id)
      // Answers in a copied conversation are complete at once; their cost belongs to the original.
      if (t && info.time?.completed && begun.has(info.id))
        once("spent", info.sessionID, "spent " + info.id, {
          id: info.id, model: String(info.modelID).replace(/[\s"]+/g, "_"),
          input: t.input || 0, output: (t.output || 0) + (t.reasoning || 0),
          cache_read: t.cache?.read || 0, cache_write: t.cache?.write || 0,
        })
    },
    "message.part.updated": ({ part }) => {
      if (final(part)) once("part", part.sessionID, part.id, part)
    },
    "session.status": ({ sessionID, status }) => {
      if (children.has(sessionID)) return
      if (status.type === "busy") {
        if (!asked.size && !failed.has(sessionID)) state("busy", sessionID)
      } else if (status.type === "retry") {
        const next = (status.next || 0) / 1000
        state("retry", sessionID, status.message, { attempt: status.attempt || 0, next })
      }
    },
    "session.idle": ({ sessionID }) => {
      if (children.has(sessionID)) return
      asked.clear()
      if (!failed.has(sessionID)) state("idle", sessionID)
    },
    "session.error": ({ sessionID, error }) => {
      if (children.has(sessionID)) return
      const aborted = error?.name === "MessageAbortedError"
      if (sessionID) failed.add(sessionID)
      state(aborted ? "interrupted" : "error", sessionID, error?.data?.message || error?.name)
    },
    "permission.asked": (request) => {
      asked.set(request.id, question(request))
      state("permission", request.sessionID, question(request))
    },
    "permission.replied": ({ sessionID, requestID }) => settle(sessionID, requestID),
    "question.asked": (request) => {
      const text = "question: " + (request.questions || []).map((each) => each.question).join(" ")
      asked.set(request.id, text)
      state("permission", request.sessionID, text)
    },
    "question.replied": ({ sessionID, requestID }) => settle(sessionID, requestID),
    "question.rejected": ({ sessionID, requestID }) => settle(sessionID, requestID),
  }
  state("ready", "")
  return {
    event: async ({ event }) => {
      try { handlers[event.type]?.(event.properties || {}) } catch {}
    },
  }
}
"""


def plugin(file: str) -> bytes:
    """Return the plugin that writes to `file`."""
    return PLUGIN.replace("@FILE@", json.dumps(file)).encode()
