package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/antrail/antrail/flow"
)

// Lost packets over the API: as they are (GET /drops/last), and as they come (GET
// /drops/follow), one JSON object a line.

// LostPackets is the answer to GET /drops/last.
type LostPackets struct {
	Packets []LostPacket `json:"packets"` // oldest first
	// Missed were lost too fast to be kept, since the agent's start: the counters
	// have them.
	Missed uint64 `json:"missed"`
	// Note says why there is nothing of the Pod that was asked for, if it is elsewhere,
	// and which Pods' links are down and which Nodes do not answer: the kernel loses what
	// goes there, and tells nobody.
	Note string `json:"note,omitempty"`
	// Next is the No to give as since next time.
	Next uint64 `json:"next"`
}

// LostQuery says which lost packets are wanted.
type LostQuery struct {
	Last   int    // at most so many, the youngest; 0 for all
	Pod    string // namespace/name: that sent it, or that its addresses name
	Reason string // by its name
	Since  uint64 // only those with a larger No
}

// followEvery is how often a follower is told.
const followEvery = 200 * time.Millisecond

// Values are the query as parameters.
func (q *LostQuery) Values() url.Values {
	v := url.Values{}
	for name, text := range map[string]string{
		"n": strconv.Itoa(q.Last), "pod": q.Pod, "reason": q.Reason, "since": strconv.FormatUint(q.Since, 10),
	} {
		if text != "" && text != "0" {
			v.Set(name, text)
		}
	}
	return v
}

func parseLostQuery(v url.Values) (q LostQuery, err error) {
	q.Pod, q.Reason = v.Get("pod"), v.Get("reason")
	if n := v.Get("n"); n != "" {
		if q.Last, err = strconv.Atoi(n); err != nil || q.Last < 0 {
			return q, fmt.Errorf("n=%q is no number of packets", n)
		}
	}
	if n := v.Get("since"); n != "" {
		if q.Since, err = strconv.ParseUint(n, 10, 64); err != nil {
			return q, fmt.Errorf("since=%q is no number", n)
		}
	}
	if namespace, name, ok := strings.Cut(q.Pod, "/"); q.Pod != "" && (!ok || namespace == "" || name == "") {
		return q, fmt.Errorf("%q is not namespace/name of a Pod", q.Pod)
	}
	if q.Reason != "" && !slices.Contains(reasonNames(), q.Reason) {
		return q, fmt.Errorf("there is no reason %q%s; there are %s", q.Reason, flow.Suggest(q.Reason, reasonNames()), strings.Join(reasonNames(), ", "))
	}
	return q, nil
}

func (q *LostQuery) wants(p *LostPacket) bool {
	return (q.Reason == "" || p.Reason == q.Reason) &&
		(q.Pod == "" || slices.Contains([]string{p.Port.Pod, p.Source, p.Destination}, q.Pod))
}

// ask is the packets that a query wants.
func (l *lostLog) ask(q *LostQuery) *LostPackets {
	all, missed, next := l.since(q.Since, q.wants)
	if q.Last > 0 {
		all = all[max(0, len(all)-q.Last):]
	}
	if all == nil {
		all = []LostPacket{}
	}
	return &LostPackets{Packets: all, Missed: missed, Next: next}
}

// first is ask for who has not asked yet. The error is that there is nothing of the
// query's Pod, nor the Pod.
func (l *lostLog) first(v url.Values) (q LostQuery, answer *LostPackets, err error) {
	if q, err = parseLostQuery(v); err != nil {
		return q, nil, err
	}
	answer = l.ask(&q)
	if q.Pod != "" && len(answer.Packets) == 0 && q.Since == 0 {
		answer.Note, err = l.p.absence(q.Pod)
	}
	if answer.Note == "" {
		answer.Note = strings.Join(append(l.p.unplugged(q.Pod), l.p.silentLines()...), "\n")
	}
	return q, answer, err
}

// unplugged names Pods whose links are down, a line each: all, or the one that is
// asked for.
func (p *pipeline) unplugged(pod string) (lines []string) {
	for _, r := range p.portRecords() {
		if r.Pod != "" && !r.Up && (pod == "" || pod == r.Pod) {
			lines = append(lines, "Pod "+r.Pod+p.downText(r.No))
		}
	}
	return lines
}

// absence says why there may be nothing of a Pod here; "" when it has a port.
func (p *pipeline) absence(pod string) (string, error) {
	n, err := p.podName(pod)
	if err != nil {
		return "", err
	}
	at, err := p.objects.PodPlace(n)
	if err != nil || at.Port != 0 {
		return "", err
	}
	if self, err := p.objects.Self(); err != nil || at.Node == self.Node {
		return fmt.Sprintf("Pod %s has no port in this switch", pod), nil
	}
	return fmt.Sprintf("Pod %s is on Node %s, whose agent tells of what it sends", pod, at.Node), nil
}

func (p *pipeline) answerLost(w http.ResponseWriter, r *http.Request) {
	_, answer, err := p.lost.first(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if r.URL.Query().Get("format") == "json" {
		writeJSON(w, answer, nil)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	WriteLost(w, answer.Packets)
}

// answerLostFollow tells what was lost, and what will be, until whoever asked goes
// away.
func (p *pipeline) answerLostFollow(w http.ResponseWriter, r *http.Request) {
	q, answer, err := p.lost.first(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	to, flush := json.NewEncoder(w), http.NewResponseController(w).Flush
	to.SetEscapeHTML(false)
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for ; ; answer = p.lost.ask(&q) {
		for i := range answer.Packets {
			if to.Encode(&answer.Packets[i]) != nil {
				return
			}
		}
		q.Since, q.Last = answer.Next, 0
		if flush() != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

// Lost asks for the last lost packets.
func (c *Client) Lost(ctx context.Context, q *LostQuery) (*LostPackets, error) {
	var all LostPackets
	return &all, c.JSON(ctx, "/drops/last", q.Values(), &all)
}

// FollowLost hands the last lost packets to tell, and then those that are lost,
// until ctx ends, which is no error, or tell returns one.
func (c *Client) FollowLost(ctx context.Context, q *LostQuery, tell func(*LostPacket) error) error {
	resp, err := c.do(ctx, http.MethodGet, "/drops/follow", q.Values(), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for d := json.NewDecoder(resp.Body); ; {
		var p LostPacket
		switch err := d.Decode(&p); {
		case err == io.EOF, err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("answer of %s to /drops/follow: %w", c.socket, err)
		}
		if err := tell(&p); err != nil {
			return err
		}
	}
}
