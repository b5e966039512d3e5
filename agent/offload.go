package agent

import (
	"cmp"
	"fmt"
	"log/slog"

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/switchd"
	"github.com/prometheus/client_golang/prometheus"
)

// Offload: packets of established connections between pods of the Node pass in
// the kernel (ports/shortcut, dataplane/shortcut.go).

// What Config.Offload may be.
const (
	OffloadAuto = switchd.OffloadAuto
	OffloadOff  = switchd.OffloadOff
)

// openOffload does what the configuration says. That the kernel cannot is no
// error: the switch forwards everything then.
func (c *Config) openOffload(log *slog.Logger) *switchd.Offload {
	switch {
	case c.Offload != OffloadAuto:
		return &switchd.Offload{Why: "it is off"}
	case c.ConnectionCache != nil && !*c.ConnectionCache:
		return &switchd.Offload{Why: "the connection cache is off"}
	}
	o, err := switchd.OpenOffload()
	if err != nil {
		log.Warn("connections are not offloaded to the kernel", "error", err)
		return &switchd.Offload{Why: err.Error()}
	}
	log.Info("connections between pods are offloaded to the kernel")
	return o
}

// PortOffload is what passed through a port in the kernel; it is part of the
// port's counters.
type PortOffload struct {
	// On says whether connections between this port and others may be offloaded;
	// Why says why not.
	On  bool   `json:"on"`
	Why string `json:"why,omitempty"`
	Rx  Counts `json:"rx"`
	Tx  Counts `json:"tx"`
}

// portOffload is the record of a port.
func (p *pipeline) portOffload(s *dataplane.PortStats) PortOffload {
	r := PortOffload{
		On: s.Shortcut != 0, Rx: Counts{Packets: s.ByKernel.RxPackets, Bytes: s.ByKernel.RxBytes},
		Tx: Counts{Packets: s.ByKernel.TxPackets, Bytes: s.ByKernel.TxBytes},
	}
	if !r.On {
		r.Why = cmp.Or(p.sw.OffloadOff(), "only between packet sockets")
	}
	return r
}

// String is the line of dump-ports.
func (o *PortOffload) String() string {
	if !o.On {
		return "offload off: " + o.Why
	}
	return fmt.Sprintf("offload on: rx pkts=%d, bytes=%d, tx pkts=%d, bytes=%d of these passed in the kernel",
		o.Rx.Packets, o.Rx.Bytes, o.Tx.Packets, o.Tx.Bytes)
}

var (
	offloadEntries = describe("offload_entries", "Connections' directions, by TCP flags, that the kernel forwards by itself now.")
	offloadConns   = describe("offload_connections", "Connections that they are of.")
	offloadPackets = describe("offload_packets_total", "Packets that passed in the kernel.")
	offloadBytes   = describe("offload_bytes_total", "Bytes of the same packets.")
	offloadLost    = describe("offload_lost_total", "Packets that the kernel was to forward and could not change.")
	offloadEvents  = describe("offload_events_total", "What became of them; dump-cache explains each.", "event")
)

// offloadValues is lines of dump-cache; none when offload is off.
func (p *pipeline) offloadValues() (all []cacheValue) {
	st := p.sw.Shortcuts()
	if !st.On {
		return nil
	}
	add := func(name string, n uint64, meaning string) {
		all = append(all, cacheValue{Counter{Name: "offload_" + name, Value: n}, meaning})
	}
	add("entries", st.Entries, "Walks that the kernel repeats by itself now.")
	add("connections", st.Connections, "Connections that they are of.")
	add("room", st.Room, "Walks that the kernel has room for.")
	add("packets", st.Packets, "Packets that passed in the kernel.")
	add("bytes", st.Bytes, "Bytes of the same packets.")
	add("lost", st.Lost, "Packets that the kernel was to forward and could not change.")
	for i, n := range st.Events {
		e := dataplane.ShortcutEvent(i)
		add(e.String(), n, e.Sentence())
	}
	return all
}

// collectOffload hands the counters to Prometheus.
func (p *pipeline) collectOffload(ch chan<- prometheus.Metric) {
	st := p.sw.Shortcuts()
	gauge(ch, offloadEntries, st.Entries)
	gauge(ch, offloadConns, st.Connections)
	counter(ch, offloadPackets, st.Packets)
	counter(ch, offloadBytes, st.Bytes)
	counter(ch, offloadLost, st.Lost)
	for i, n := range st.Events {
		counter(ch, offloadEvents, n, dataplane.ShortcutEvent(i).String())
	}
}
