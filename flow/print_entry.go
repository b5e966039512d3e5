package flow

import (
	"strconv"
	"time"
)

// DefaultPriority is the priority of an entry whose text has none. It is not printed (OpenFlow's
// OFP_DEFAULT_PRIORITY).
const DefaultPriority = 32768

// Format is how entries are printed.
type Format struct {
	Names *Names // nil prints numbers
	Stats *Stats // nil omits the counters, as --no-stats does
	// Loads writes a load as load:, and not as the set_field that ovs-ofctl prints. So
	// parse.Entry returns the same action.
	Loads bool
	// Version is the OpenFlow version of the spelling of actions. The default is OpenFlow 1.5.
	Version Version
}

// Stats are a switch's counters of an entry.
type Stats struct {
	Packets, Bytes uint64
	Duration       time.Duration // since the entry was installed
	Idle           time.Duration // since a packet last matched
	// Hard is the time since the entry was last changed. It is printed if it is not 0 and differs
	// from Duration by a second or more.
	Hard time.Duration
}

// String is the entry as ovs-ofctl dump-flows --no-stats prints it, with
// numbers.
func (e *Entry) String() string { return e.Text(Format{}) }

// Text is the entry as ovs-ofctl dump-flows prints it, with its leading blank
// and without a newline.
func (e *Entry) Text(f Format) string { return string(e.AppendText(nil, f)) }

// AppendText appends Text to b.
func (e *Entry) AppendText(b []byte, f Format) []byte {
	b = append(b, ' ')
	if e.Cookie != 0 || f.Stats != nil {
		b = append(b, "cookie=0x"...)
		b = strconv.AppendUint(b, e.Cookie, 16)
		b = append(b, ", "...)
	}
	if f.Stats != nil {
		b = appendDuration(b, f.Stats.Duration)
	}
	if e.Table != 0 || f.Stats != nil || f.Names.Table(e.Table) != "" {
		b = appendTable(append(b, "table="...), e.Table, f.Names)
		b = append(b, ", "...)
	}
	b = e.appendSettings(b, f)
	b = e.appendMatch(b, f.Names)
	b = append(b, "actions="...)
	return appendActions(b, e.Actions, f)
}

// appendSettings writes counters, timeouts and ages. A dump of OpenFlow 1.0 has no flags.
func (e *Entry) appendSettings(b []byte, f Format) []byte {
	s := f.Stats
	if s != nil {
		b = appendSetting(b, "n_packets=", s.Packets)
		b = appendSetting(b, "n_bytes=", s.Bytes)
	}
	if e.IdleTimeout != 0 {
		b = appendSetting(b, "idle_timeout=", uint64(e.IdleTimeout))
	}
	if e.HardTimeout != 0 {
		b = appendSetting(b, "hard_timeout=", uint64(e.HardTimeout))
	}
	if e.SendFlowRem && f.Version != OpenFlow10 {
		b = append(b, "send_flow_rem "...)
	}
	if s != nil {
		b = appendSetting(b, "idle_age=", uint64(s.Idle/time.Second))
		if s.Hard != 0 && s.Hard/time.Second != s.Duration/time.Second {
			b = appendSetting(b, "hard_age=", uint64(s.Hard/time.Second))
		}
	}
	return b
}

func appendSetting(b []byte, key string, v uint64) []byte {
	b = strconv.AppendUint(append(b, key...), v, 10)
	return append(b, ", "...)
}

// appendDuration writes seconds and milliseconds: duration=1.234s.
func appendDuration(b []byte, d time.Duration) []byte {
	b = append(b, "duration="...)
	b = strconv.AppendFloat(b, float64(d/time.Millisecond)/1000, 'f', 3, 64)
	return append(b, "s, "...)
}

// appendMatch writes priority and match, and a blank unless both are empty.
func (e *Entry) appendMatch(b []byte, n *Names) []byte {
	start := len(b)
	if e.Priority != DefaultPriority {
		b = strconv.AppendUint(append(b, "priority="...), uint64(e.Priority), 10)
		if !e.Match.IsAny() {
			b = append(b, ',')
		}
	}
	b = e.Match.AppendText(b, n)
	if len(b) > start {
		b = append(b, ' ')
	}
	return b
}

var groupTypeNames = [...]string{"all", "select", "indirect", "ff"}

// String is the group's type as ovs-ofctl writes it: all, select, indirect, ff.
func (t GroupType) String() string { return groupTypeNames[t] }

// String is the group as ovs-ofctl dump-groups prints it, with numbers.
func (g *Group) String() string { return g.Text(nil) }

// Text is the group as ovs-ofctl dump-groups prints it (OpenFlow 1.5), with its
// leading blank and without a newline.
func (g *Group) Text(n *Names) string { return string(g.AppendText(nil, Format{Names: n})) }

// AppendText appends Text to b, in a format without Stats.
func (g *Group) AppendText(b []byte, f Format) []byte {
	b = strconv.AppendUint(append(b, " group_id="...), uint64(g.ID), 10)
	b = append(append(b, ",type="...), g.Type.String()...)
	for _, u := range g.Buckets {
		b = strconv.AppendUint(append(b, ",bucket=bucket_id:"...), uint64(u.ID), 10)
		if g.Type == GroupSelect && u.Weight != 1 {
			b = strconv.AppendUint(append(b, ",weight:"...), uint64(u.Weight), 10)
		}
		if u.WatchPort != 0 {
			b = appendPort(append(b, ",watch_port:"...), u.WatchPort, f.Names)
		}
		b = appendActions(append(b, ",actions="...), u.Actions, f)
	}
	return b
}

// String is Text.
func (m *Meter) String() string { return m.Text() }

// Text is the meter as ovs-ofctl dump-meters prints it: a line for the meter and one for each
// band.
func (m *Meter) Text() string {
	b := strconv.AppendUint([]byte("meter="), uint64(m.ID), 10)
	if m.PktPS {
		b = append(b, " pktps"...)
	} else {
		b = append(b, " kbps"...)
	}
	if m.Burst {
		b = append(b, " burst"...)
	}
	if m.Stats {
		b = append(b, " stats"...)
	}
	b = append(b, " bands="...)
	for _, d := range m.Bands {
		b = strconv.AppendUint(append(b, "\ntype=drop rate="...), uint64(d.Rate), 10)
		if m.Burst {
			b = strconv.AppendUint(append(b, " burst_size="...), uint64(d.BurstSize), 10)
		}
	}
	return string(b)
}
