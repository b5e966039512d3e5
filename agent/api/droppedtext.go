package api

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/trace"
)

// DropColumns are the columns of WriteDrops.
const DropColumns = "TIME\tFROM\tREASON\tTABLE\tOBJECT\tPACKET\tCT\tENTRY"

// WriteDrops prints dropped packets as an aligned table, oldest first. Below it are the
// meanings of their reasons, except of drops by an entry, which the table shows.
func WriteDrops(w io.Writer, all []DroppedPacket) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, DropColumns)
	for i := range all {
		fmt.Fprintln(t, all[i].Line())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	meanings := map[string]string{}
	for i := range all {
		if r := all[i].Reason; r != telemetry.DropByEntry.String() {
			meanings[r] = all[i].Meaning
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(meanings)) {
		fmt.Fprintf(w, "%s: %s\n", reason, meanings[reason])
	}
	return nil
}

// Line is a dropped packet in one line, with a tab between its columns (DropColumns).
func (p *DroppedPacket) Line() string {
	return strings.Join([]string{
		clockText(p.Time), p.From(), p.Reason, cmp.Or(p.Table, "-"), cmp.Or(p.Object(), "-"),
		p.Summary(), p.ctText(), cmp.Or(p.EntryText(), "-"),
	}, "\t")
}

// clockText is the time of day, with the date if it is not today.
func clockText(t time.Time) string {
	layout := "15:04:05.000000"
	if now := time.Now().In(t.Location()); now.Format(time.DateOnly) != t.Format(time.DateOnly) {
		layout = "01-02 " + layout
	}
	return t.Format(layout)
}

// From is the sending Pod, or the port where the packet entered. For a packet that was dropped
// on its way out, it is "to" and the Pod or port there.
func (p *DroppedPacket) From() string {
	who := cmp.Or(p.Port.Pod, p.Port.Name, fmt.Sprintf("port %d", p.Port.No))
	if p.Leaving {
		return "to " + who
	}
	return who
}

// Summary has the packet's addresses and its destination Pod. For a packet dropped on its
// way out, also the sending Pod.
func (p *DroppedPacket) Summary() string {
	s := p.Packet
	if s == "" {
		s = count(int(p.Packets), "packet", "packets")
	} else if p.Packets > 1 {
		s = fmt.Sprintf("%d packets, the last one %s", p.Packets, s)
	}
	if p.Destination != "" {
		s += " (" + p.Destination + ")"
	}
	if p.Forged != "" {
		s += ": " + p.Forged
	}
	if p.Leaving && p.Source != "" {
		s += " sent by " + p.Source
	}
	switch {
	case p.Tunnel != nil && p.Tunnel.Src != "":
		s += " from " + p.Tunnel.Src
	case p.Tunnel != nil && p.Leaving:
		s += " for the Node " + p.Tunnel.Dst
	}
	return s
}

// How is the reason and the place of the drop.
func (p *DroppedPacket) How() string {
	text := p.Reason
	switch {
	case p.Table != "":
		text += " in table " + p.Table
	case p.Leaving:
		text += " at " + portName(p.Port)
	}
	if p.Forged != "" {
		text += ", " + p.Forged
	}
	return text
}

func (p *DroppedPacket) ctText() string {
	if p.CT == nil {
		return "-"
	}
	return p.CT.State
}

// EntryText is the entry in short form; "" for none.
func (p *DroppedPacket) EntryText() string {
	if p.Entry == nil {
		return ""
	}
	return entryShort(p.Entry)
}

// entryShort is an entry's priority and match, with the names of marks in the match.
func entryShort(e *trace.Entry) string {
	text := fmt.Sprintf("priority=%d", e.Priority)
	if e.Match != "" {
		text += "," + e.Match
	}
	if len(e.Marks) > 0 {
		text += " (" + strings.Join(e.Marks, ", ") + ")"
	}
	return text
}

// Object names the policies behind the entry that dropped the packet, or other objects if there
// are none; "" if unknown.
func (p *DroppedPacket) Object() string {
	if p.Entry == nil {
		return ""
	}
	return p.Entry.By()
}
