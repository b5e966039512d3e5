package api

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/antrail/antrail/trace"
)

// Replaying recorded walks: the packets walk the current entries. Conntrack answers as it did
// when they were recorded. The difference is reported.

// Replayed is a recorded walk, and the walk of its packet now.
type Replayed struct {
	Walk *trace.Walk
	Now  TraceAnswer
	// LeftThen and LeftNow are the first entries that differ between the recorded and the
	// current walk; "" if a walk had ended.
	LeftThen, LeftNow string
}

// Same says whether both walks are equal.
func (r *Replayed) Same() bool {
	return r.LeftThen == r.LeftNow && r.Now.Verdict == r.Walk.Verdict.Text
}

// ReplayWalk walks the packet of a recorded walk once more. The walk is dry: it changes no
// counter and no connection.
func (c *Client) ReplayWalk(ctx context.Context, w *trace.Walk) (*Replayed, error) {
	b, err := c.Post(ctx, "/trace", url.Values{"format": {"json"}}, RequestOf(w))
	if err != nil {
		return nil, fmt.Errorf("walk %s of %s: %w", w.ID, w.Node, err)
	}
	r := &Replayed{Walk: w}
	if err := json.Unmarshal(b, &r.Now); err != nil {
		return nil, err
	}
	then := entriesMet(w)
	for i := range max(len(then), len(r.Now.Entries)) {
		var a, b string
		if i < len(then) {
			a = then[i].text()
		}
		if i < len(r.Now.Entries) {
			b = r.Now.Entries[i].text()
		}
		if a != b {
			r.LeftThen, r.LeftNow = a, b
			break
		}
	}
	return r, nil
}

// RequestOf makes the request that repeats the walk of a recorded packet.
func RequestOf(w *trace.Walk) *TraceRequest {
	frame := slices.Concat(w.Frame, make([]byte, max(0, min(w.Length, 1<<16)-len(w.Frame)))) // bytes that were not recorded are payload
	r := &TraceRequest{Flow: fmt.Sprintf("in_port=%d", w.InPort.No), Packet: hex.EncodeToString(frame), Undone: w.Undone}
	if w.Mark != 0 {
		r.Flow += fmt.Sprintf(",pkt_mark=%d", w.Mark)
	}
	if t := w.Tunnel; t != nil {
		family := map[bool]string{true: "ipv6_"}[strings.Contains(t.Dst, ":")]
		r.Flow += fmt.Sprintf(",tun_id=%d", t.VNI)
		for name, addr := range map[string]string{"src": t.Src, "dst": t.Dst} {
			if addr != "" {
				r.Flow += fmt.Sprintf(",tun_%s%s=%s", family, name, addr)
			}
		}
	}
	for i := range w.Steps {
		if c := w.Steps[i].CT; c != nil {
			r.CT = append(r.CT, answerOf(c))
		}
	}
	return r
}

func answerOf(c *trace.CT) TraceCT {
	a := TraceCT{State: c.State, Mark: c.Mark, Label: c.Label}
	for _, n := range c.NAT {
		if n.End == "source" {
			a.Source = n.After
		} else {
			a.Destination = n.After
		}
	}
	return a
}

// entriesMet are the entries of a recorded walk.
func entriesMet(w *trace.Walk) (all []TraceEntry) {
	for i := range w.Steps {
		s := &w.Steps[i]
		if s.Kind != trace.StepEntry {
			continue
		}
		e := TraceEntry{Table: s.Table}
		if s.Entry != nil {
			e.Priority, e.Match, e.Actions = s.Entry.Priority, s.Entry.Match, s.Entry.Actions
		}
		all = append(all, e)
	}
	return all
}

// text is the entry as in a dump.
func (e *TraceEntry) text() string {
	if e.Actions == "" {
		return fmt.Sprintf("table=%s: no entry", e.Table)
	}
	return strings.TrimSuffix(fmt.Sprintf("table=%s, priority=%d,%s", e.Table, e.Priority, e.Match), ",") + " actions=" + e.Actions
}

// WriteText prints the difference, or nothing if there is none.
func (r *Replayed) WriteText(w io.Writer) error {
	if r.Same() {
		return nil
	}
	node := ""
	if r.Walk.Node != "" {
		node = " on " + r.Walk.Node
	}
	_, err := fmt.Fprintf(w, "%s%s, id %s\n  then: %s\n  now:  %s\n", trace.Summary(r.Walk.Frame), node, r.Walk.ID, r.Walk.Verdict.Text, r.Now.Verdict)
	if err == nil && r.LeftThen != r.LeftNow {
		_, err = fmt.Fprintf(w, "  - %s\n  + %s\n", r.LeftThen, r.LeftNow)
	}
	return err
}

// WriteJSON prints the comparison as a line of JSON, also without a difference.
func (r *Replayed) WriteJSON(w io.Writer) error {
	return json.NewEncoder(w).Encode(struct {
		ID        string `json:"id"`
		Node      string `json:"node,omitempty"`
		Packet    string `json:"packet"`
		Same      bool   `json:"same"`
		Then      string `json:"then"` // verdicts
		Now       string `json:"now"`
		EntryThen string `json:"entryThen,omitempty"` // the first entries that differ
		EntryNow  string `json:"entryNow,omitempty"`
	}{r.Walk.ID, r.Walk.Node, r.Walk.Packet, r.Same(), r.Walk.Verdict.Text, r.Now.Verdict, r.LeftThen, r.LeftNow})
}
