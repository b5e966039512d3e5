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

// DroppedPacket is a dropped packet.
type DroppedPacket struct {
	// No numbers dropped packets from 1, since the agent's start.
	No   uint64    `json:"no"`
	Time time.Time `json:"time"`
	// Packets is mostly 1. For drops on the way out, it is how many packets a port dropped
	// since the last record. The port keeps only the last of them.
	Packets uint64 `json:"packets"`
	// Port is the port where the packet entered, with its Pod. If Leaving is set, it is the
	// port that dropped the packet on its way out.
	Port    trace.Port `json:"port"`
	Leaving bool       `json:"leaving,omitempty"`
	Reason  string     `json:"reason"`
	Meaning string     `json:"meaning"`
	// Table is where the walk ended, and Entry the entry of that table. Entry is nil for a
	// table-miss. Table is empty if no table was looked up.
	Table string       `json:"table,omitempty"`
	Entry *trace.Entry `json:"entry,omitempty"`
	CT    *DroppedCT   `json:"ct,omitempty"`
	// Source and Destination are the Pods with the packet's addresses, as namespace/name.
	Source      string `json:"source,omitempty"`
	Destination string `json:"destination,omitempty"`
	// Forged says which source address is not the sending Pod's.
	Forged string        `json:"forged,omitempty"`
	Tunnel *trace.Tunnel `json:"tunnel,omitempty"` // the outer header, received or about to be sent
	Packet string        `json:"packet"`           // a summary
	Length int           `json:"length"`           // in bytes
	// Frame is the packet's first 128 bytes, as NAT and actions left them.
	Frame trace.Bytes `json:"frame"`
}

// DroppedCT is the conntrack state of a dropped packet.
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
	// Missed counts packets since the agent's start that were dropped too fast to be kept. The
	// counters include them.
	Missed uint64 `json:"missed"`
	// Note says why the requested Pod has no packets here, if it is elsewhere. Otherwise it
	// names Pods whose links are down and Nodes that do not answer. The kernel drops packets to
	// those without a report.
	Note string `json:"note,omitempty"`
	// Next is the value of DropQuery.Since for the next request.
	Next uint64 `json:"next"`
}

// DropQuery selects dropped packets.
type DropQuery struct {
	Last   int    // the newest Last; 0 for all
	Pod    string // namespace/name of the sender, or of a Pod with the packet's addresses
	Reason string // the name of a reason
	Since  uint64 // packets with a larger No
}

// Values are the parameters of the query.
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

// DroppedPackets requests the last dropped packets.
func (c *Client) DroppedPackets(ctx context.Context, q *DropQuery) (*DroppedPackets, error) {
	var all DroppedPackets
	return &all, c.JSON(ctx, "/drops/last", q.Values(), &all)
}

// FollowedLine is a line of the stream of dropped packets.
type FollowedLine struct {
	*DroppedPacket
	Note  string `json:"note,omitempty"`
	Error string `json:"error,omitempty"` // the switch does not answer; the last line
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
