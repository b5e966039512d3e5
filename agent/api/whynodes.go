package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Why asks several Nodes one after the other: first the Node where the packet enters, then
// those that it goes to.

// Why asks agents of different Nodes, and joins their answers. Decisions of Nodes that are
// missing or do not answer stay undecided.
func Why(ctx context.Context, agents []*Client, r *WhyRequest) (*WhyAnswer, error) {
	answer, err := firstWhy(ctx, agents, r)
	if err != nil {
		return nil, err
	}
	for i := range answer.Ways {
		if err := answer.follow(ctx, &answer.Ways[i], agents); err != nil {
			return nil, err
		}
	}
	answer.Conclude()
	return answer, nil
}

// firstWhy is the answer of the Node where the packet enters. If none is that Node, it is the
// first answer.
func firstWhy(ctx context.Context, agents []*Client, r *WhyRequest) (*WhyAnswer, error) {
	var first *WhyAnswer
	var failed error
	for _, c := range agents {
		a, err := c.askWhy(ctx, r)
		switch {
		case err != nil && failed == nil:
			failed = err
		case err == nil && a.begins():
			return a, nil
		case err == nil && first == nil:
			first = a
		}
	}
	if first == nil {
		return nil, failed
	}
	first.noteError(failed)
	return first, nil
}

// begins says whether packets of the first end enter the cluster's network at this Node.
func (a *WhyAnswer) begins() bool { return a.Origin == "" || a.Origin == a.Node }

// noteError adds a note that an agent did not answer.
func (a *WhyAnswer) noteError(err error) {
	if err != nil && !slices.Contains(a.Notes, err.Error()) {
		a.Notes = append(a.Notes, err.Error())
	}
}

func (c *Client) askWhy(ctx context.Context, r *WhyRequest) (*WhyAnswer, error) {
	b, err := c.Post(ctx, "/why", nil, r)
	if err != nil {
		return nil, err
	}
	a := &WhyAnswer{}
	if err := json.Unmarshal(b, a); err != nil {
		return nil, fmt.Errorf("answer of %s to /why: %w", c.socket, err)
	}
	if len(a.Ways) == 0 {
		return nil, fmt.Errorf("answer of %s to /why: it has no way of the packet", c.socket)
	}
	return a, nil
}

// mostNodes bounds the Nodes of a packet's way.
const mostNodes = 4

// follow asks the next Nodes of a way.
func (a *WhyAnswer) follow(ctx context.Context, w *WhyWay, agents []*Client) error {
	for range mostNodes {
		if w.Next == nil || w.Denied != "" {
			return nil
		}
		next, silent, err := nextWhy(ctx, agents, w.Next)
		if next == nil {
			a.noteError(silent)
			return err
		}
		for _, n := range next.Notes {
			if !slices.Contains(a.Notes, n) {
				a.Notes = append(a.Notes, n)
			}
		}
		rest := &next.Ways[0]
		if w.Severed && len(rest.Ends) > 0 {
			rest.Ends[0] = "if it came there, " + rest.Ends[0]
		}
		w.Decisions, w.Ends = append(w.Decisions, rest.Decisions...), append(w.Ends, rest.Ends...)
		w.Walks, w.Next = append(w.Walks, rest.Walks...), rest.Next
		w.Met, w.Advice, a.Seen = rest.Met, cmp.Or(rest.Advice, w.Advice), a.Seen.and(next.Seen)
		if rest.Denied != "" {
			w.Denied = "on Node " + next.Node + ", " + rest.Denied
		}
	}
	return nil
}

// nextWhy asks the Node that a packet goes to. The answer is nil if none of the agents is that
// Node. silent is the error of an agent that did not answer, and could be it.
func nextWhy(ctx context.Context, agents []*Client, to *Carried) (answer *WhyAnswer, silent, failed error) {
	for _, c := range agents {
		answer, err := c.askWhy(ctx, &WhyRequest{Carried: to})
		var nobody *NoAgentError
		switch {
		case err == nil:
			return answer, nil, nil
		case errors.As(err, &nobody):
			silent = err
		case !strings.HasPrefix(err.Error(), "this is Node "):
			failed = err
		}
	}
	return nil, silent, failed
}

// Conclude writes the sentences of an answer.
func (a *WhyAnswer) Conclude() {
	var denied, undecided, allowed []*WhyWay
	for i := range a.Ways {
		switch w := &a.Ways[i]; w.conclude(a) {
		case verdictDenied:
			denied = append(denied, w)
		case verdictUndecided:
			undecided = append(undecided, w)
		default:
			allowed = append(allowed, w)
		}
	}
	n := len(a.Ways)
	a.Allowed, a.Undecided = len(allowed) == n, denied == nil && undecided != nil
	switch {
	case n == 0:
	case n == 1:
		a.Sentence = a.Ways[0].Sentence
	case a.Allowed:
		a.Sentence = fmt.Sprintf("%s; all %d endpoints are allowed", allowed[0].Sentence, n)
	case a.Undecided:
		a.Sentence = fmt.Sprintf("%s; that holds for %d of %d endpoints, and no other is denied", undecided[0].Sentence, len(undecided), n)
	case len(denied) == n:
		a.Sentence = fmt.Sprintf("%s; none of %d endpoints is allowed", denied[0].Sentence, n)
	default:
		a.Sentence = fmt.Sprintf("denied for %d of %d endpoints: %s", len(denied), n, denied[0].Denied)
	}
}

// verdict is the result of a way.
type verdict uint8

const (
	verdictAllowed verdict = iota
	verdictDenied
	verdictUndecided
)

// conclude writes the sentence of a way, and returns its verdict.
func (w *WhyWay) conclude(a *WhyAnswer) verdict {
	w.Unasked, w.Allowed = nil, false
	if w.Denied != "" {
		w.Sentence = "denied: " + w.Denied
		return verdictDenied
	}
	parts := []string{w.What}
	for i := range w.Decisions {
		parts = append(parts, w.Decisions[i].text())
	}
	parts = append(parts, w.Ends...)
	if !a.begins() {
		w.Unasked = append(w.Unasked, a.Origin)
		parts = append(parts, fmt.Sprintf("Node %s, where it comes from, was not asked", a.Origin))
	}
	if w.Next != nil {
		w.Unasked = append(w.Unasked, w.Next.To)
		parts = append(parts, fmt.Sprintf("Node %s, which decides the rest, was not asked", w.Next.To))
	}
	if w.Open != "" {
		parts = append(parts, w.Open)
	}
	if w.Unasked != nil || w.Open != "" {
		w.Sentence = "undecided: " + strings.Join(parts, "; ")
		return verdictUndecided
	}
	w.Sentence, w.Allowed = "allowed: "+strings.Join(parts, "; "), true
	return verdictAllowed
}
