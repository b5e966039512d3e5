package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/antrail/antrail/trace"
)

// Several Nodes, asked one after the other: the one where the packet enters, and
// those that it goes to.

// Why asks agents, each of another Node, and puts their answers together. What goes
// to a Node that is not among them ends there.
func Why(ctx context.Context, agents []*Client, r *WhyRequest) (*WhyAnswer, error) {
	answer, err := firstWhy(ctx, agents, r)
	if err != nil {
		return nil, err
	}
	for i := range answer.Ways {
		if err := answer.Ways[i].follow(ctx, agents); err != nil {
			return nil, err
		}
	}
	answer.conclude()
	return answer, nil
}

// firstWhy is the answer of the Node where the packet enters, or else of the first
// that has one.
func firstWhy(ctx context.Context, agents []*Client, r *WhyRequest) (*WhyAnswer, error) {
	var first *WhyAnswer
	var failed error
	for _, c := range agents {
		a, err := c.askWhy(ctx, r)
		switch {
		case err != nil && failed == nil:
			failed = err
		case err == nil && a.Begins:
			return a, nil
		case err == nil && first == nil:
			first = a
		}
	}
	if first == nil {
		return nil, failed
	}
	return first, nil
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
		return nil, fmt.Errorf("answer of %s to /why: there is no way in it", c.socket)
	}
	return a, nil
}

// mostNodes bounds a packet's way.
const mostNodes = 4

// follow asks the Nodes that a way goes to.
func (w *WhyWay) follow(ctx context.Context, agents []*Client) error {
	for range mostNodes {
		if w.Next == nil {
			return nil
		}
		next, err := nextWhy(ctx, agents, w.Next)
		if next == nil {
			return err
		}
		rest := &next.Ways[0]
		w.Decisions, w.Ends = append(w.Decisions, rest.Decisions...), append(w.Ends, rest.Ends...)
		w.Walks, w.Next = append(w.Walks, rest.Walks...), rest.Next
		if rest.Denied != "" {
			w.Denied = "on Node " + next.Node + ", " + rest.Denied
		}
	}
	return nil
}

// nextWhy asks the Node that a packet goes to; nil when it is not among the agents.
func nextWhy(ctx context.Context, agents []*Client, to *Carried) (answer *WhyAnswer, err error) {
	for _, c := range agents {
		if answer, err = c.askWhy(ctx, &WhyRequest{Carried: to}); err == nil {
			return answer, nil
		}
		if strings.HasPrefix(err.Error(), "this is Node ") {
			err = nil
		}
	}
	return nil, err
}

// conclude makes the sentences of an answer, from what its ways have.
func (a *WhyAnswer) conclude() {
	denied := -1
	allowed := 0
	for i := range a.Ways {
		w := &a.Ways[i]
		w.conclude()
		if w.Allowed {
			allowed++
		} else if denied < 0 {
			denied = i
		}
	}
	a.Allowed = denied < 0
	switch n := len(a.Ways); {
	case n == 0:
	case a.Allowed && n == 1, !a.Allowed && allowed == 0 && n == 1:
		a.Sentence = a.Ways[0].Sentence
	case a.Allowed:
		a.Sentence = fmt.Sprintf("%s; all %d endpoints are allowed", a.Ways[0].Sentence, n)
	case allowed == 0:
		a.Sentence = fmt.Sprintf("%s; none of %d endpoints is allowed", a.Ways[denied].Sentence, n)
	default:
		a.Sentence = fmt.Sprintf("denied for %d of %d endpoints: %s", n-allowed, n, a.Ways[denied].Denied)
	}
}

func (w *WhyWay) conclude() {
	w.Allowed = w.Denied == ""
	if !w.Allowed {
		w.Sentence = "denied: " + w.Denied
		return
	}
	parts := []string{"allowed: " + w.What}
	for i := range w.Decisions {
		parts = append(parts, w.Decisions[i].text())
	}
	parts = append(parts, w.Ends...)
	if w.Next != nil {
		parts = append(parts, fmt.Sprintf("what Node %s decides was not asked", w.Next.To))
	}
	w.Sentence = strings.Join(parts, "; ")
}

// WriteText writes the sentence, and below it the walk of each way.
func (a *WhyAnswer) WriteText(w io.Writer) error {
	if _, err := fmt.Fprintln(w, a.Sentence); err != nil {
		return err
	}
	for _, n := range a.Notes {
		fmt.Fprintln(w, "note:", n)
	}
	for i := range a.Ways {
		way := &a.Ways[i]
		fmt.Fprintln(w)
		if len(a.Ways) > 1 {
			fmt.Fprintf(w, "%s: %s\n", way.Endpoint, way.Sentence)
		}
		if err := trace.WriteTree(w, way.Walks); err != nil {
			return err
		}
	}
	return nil
}
