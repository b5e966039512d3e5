package agent

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// LostColumns is what WriteLost prints of a packet.
const LostColumns = "TIME\tFROM\tREASON\tTABLE\tOBJECT\tPACKET\tCT\tENTRY"

// WriteLost prints lost packets as an aligned table, oldest first.
func WriteLost(w io.Writer, all []LostPacket) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, LostColumns)
	for i := range all {
		fmt.Fprintln(t, all[i].Line())
	}
	return t.Flush()
}

// Line is a lost packet in one line, with a tab between its columns (LostColumns).
func (p *LostPacket) Line() string {
	return strings.Join([]string{
		p.Time.Format("15:04:05.000000"), p.From(), p.Reason, cmp.Or(p.Table, "-"), cmp.Or(p.Object(), "-"),
		p.What(), p.ctText(), cmp.Or(p.entryText(), "-"),
	}, "\t")
}

// From is the Pod that the packet came from, or the port that it entered by.
func (p *LostPacket) From() string {
	switch {
	case p.Port.Pod != "":
		return p.Port.Pod
	case p.Port.Name != "":
		return p.Port.Name
	}
	return fmt.Sprintf("port %d", p.Port.No)
}

// What is its addresses, and the Pod that it was for.
func (p *LostPacket) What() string {
	s := p.Packet
	if s == "" {
		s = fmt.Sprintf("%d packets", p.Packets)
	} else if p.Packets > 1 {
		s = fmt.Sprintf("%d packets, the last one %s", p.Packets, s)
	}
	if p.Destination != "" {
		s += " (" + p.Destination + ")"
	}
	if p.Tunnel != nil && p.Tunnel.Src != "" {
		s += " from " + p.Tunnel.Src
	}
	return s
}

func (p *LostPacket) ctText() string {
	if p.CT == nil {
		return "-"
	}
	return p.CT.State
}

// entryText is the entry in short: its priority and match.
func (p *LostPacket) entryText() string {
	if p.Entry == nil {
		return ""
	}
	text := fmt.Sprintf("priority=%d", p.Entry.Priority)
	if p.Entry.Match != "" {
		text += "," + p.Entry.Match
	}
	return text
}

// Object is what wanted the entry that the packet was lost at: policies, if there
// are any, else whatever it is; "" when nothing is known.
func (p *LostPacket) Object() string {
	if p.Entry == nil {
		return ""
	}
	return p.Entry.By()
}
