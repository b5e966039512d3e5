package agent

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/antrail/antrail/flow"
)

// Lost packets over the API, as they are: GET /drops/last.

// LostPackets is the answer to GET /drops/last.
type LostPackets struct {
	Packets []LostPacket `json:"packets"` // oldest first
	// Missed were lost too fast to be kept, since the agent's start: the counters
	// have them.
	Missed uint64 `json:"missed"`
	// Note says why there is nothing of the Pod that was asked for, if it is elsewhere,
	// or else which Pods' links are down and which Nodes do not answer: the kernel loses
	// what goes there, and tells nobody.
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
		answer.Note = severedText(l.p.severed(q.Pod))
	}
	return q, answer, err
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

// Lost asks for the last lost packets.
func (c *Client) Lost(ctx context.Context, q *LostQuery) (*LostPackets, error) {
	var all LostPackets
	return &all, c.JSON(ctx, "/drops/last", q.Values(), &all)
}
