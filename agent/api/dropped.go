package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/antrail/antrail/trace"
)

// DroppedPacket is a packet that was dropped.
type DroppedPacket struct {
	// No counts them from 1, since the agent's start.
	No   uint64    `json:"no"`
	Time time.Time `json:"time"`
	// Packets is 1, or how many a port dropped since it was last asked: a port counts,
	// and keeps the last one that it did not send, or that a tunnel refused.
	Packets uint64 `json:"packets"`
	// Port is where it entered, with its Pod, or, when it is Leaving, the port that
	// dropped it on its way out.
	Port    trace.Port `json:"port"`
	Leaving bool       `json:"leaving,omitempty"`
	Reason  string     `json:"reason"`
	Meaning string     `json:"meaning"`
	// Table is where its walk ended, Entry what the table gave: nothing for a
	// table-miss, or where no table was asked.
	Table string       `json:"table,omitempty"`
	Entry *trace.Entry `json:"entry,omitempty"`
	CT    *DroppedCT   `json:"ct,omitempty"`
	// Source and Destination are the Pods with the packet's addresses, as
	// namespace/name.
	Source      string `json:"source,omitempty"`
	Destination string `json:"destination,omitempty"`
	// Forged is what the source has that is not the sending Pod's, in words.
	Forged string        `json:"forged,omitempty"`
	Tunnel *trace.Tunnel `json:"tunnel,omitempty"` // that it came in, or was to leave in
	Packet string        `json:"packet"`           // in a few words
	Length int           `json:"length"`           // in bytes
	// Frame is its first 128 bytes, with what NAT and entries had written.
	Frame trace.Bytes `json:"frame"`
}

// DroppedCT is what conntrack had said of a dropped packet.
type DroppedCT struct {
	State string   `json:"state"`
	Zone  uint16   `json:"zone"`
	Mark  uint32   `json:"mark,omitempty"`
	Label string   `json:"label,omitempty"`
	Marks []string `json:"marks,omitempty"` // mark and label in words
}

// DroppedPackets is the answer to GET /drops/last.
type DroppedPackets struct {
	Packets []DroppedPacket `json:"packets"` // oldest first
	// Missed were dropped too fast to be kept, since the agent's start: the counters
	// have them.
	Missed uint64 `json:"missed"`
	// Note says why there is nothing of the Pod that was asked for, if it is elsewhere,
	// or else which Pods' links are down and which Nodes do not answer: the kernel loses
	// what goes there, and tells nobody.
	Note string `json:"note,omitempty"`
	// Next is the No to give as since next time.
	Next uint64 `json:"next"`
}

// DropQuery says which dropped packets are wanted.
type DropQuery struct {
	Last   int    // at most so many, the youngest; 0 for all
	Pod    string // namespace/name: that sent it, or that its addresses name
	Reason string // by its name
	Since  uint64 // only those with a larger No
}

// Values are the query as parameters.
func (q *DropQuery) Values() url.Values {
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

// DroppedPackets asks for the last dropped packets.
func (c *Client) DroppedPackets(ctx context.Context, q *DropQuery) (*DroppedPackets, error) {
	var all DroppedPackets
	return &all, c.JSON(ctx, "/drops/last", q.Values(), &all)
}

// FollowedLine is a line of the stream of dropped packets.
type FollowedLine struct {
	*DroppedPacket
	Note  string `json:"note,omitempty"`
	Error string `json:"error,omitempty"` // of the switch; no line follows
}

// FollowDrops calls tell with the last dropped packets, and then with each new one, until ctx
// ends or tell returns an error. If ctx ends, FollowDrops returns nil. It calls note with
// notes on silent links and Nodes.
func (c *Client) FollowDrops(ctx context.Context, q *DropQuery, tell func(*DroppedPacket) error, note func(string)) error {
	resp, err := c.do(ctx, http.MethodGet, "/drops/follow", q.Values(), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for d := json.NewDecoder(resp.Body); ; {
		l := FollowedLine{DroppedPacket: new(DroppedPacket)}
		switch err := d.Decode(&l); {
		case err == io.EOF, err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("answer of %s to /drops/follow: %w", c.socket, err)
		case l.Error != "":
			return errors.New(l.Error)
		case l.Note != "":
			note(l.Note)
			continue
		}
		if err := tell(l.DroppedPacket); err != nil {
			return err
		}
	}
}
