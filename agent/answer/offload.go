package answer

import (
	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/prometheus/client_golang/prometheus"
)

// Offload: packets of established connections pass in the kernel (ports/offload,
// dataplane/offload).

var (
	offloadEntries = describe("offload_entries", "Directions of connections, by TCP flags, that the kernel forwards without the switch.")
	offloadConns   = describe("offload_connections", "Connections with such a direction.")
	offloadPackets = describe("offload_packets_total", "Packets that passed in the kernel.")
	offloadBytes   = describe("offload_bytes_total", "Bytes of the same packets.")
	offloadDropped = describe("offload_dropped_total", "Packets to forward that the kernel could not rewrite, and dropped.")
	offloadEvents  = describe("offload_events_total", "Events of offload; dump-cache explains each.", "event")
)

// offloadValues are lines of dump-cache; none if offload is off.
func (p *Answers) offloadValues() (all []cacheValue) {
	st := p.Switch.OffloadStats()
	if !st.On {
		return nil
	}
	add := func(name string, n uint64, meaning string) {
		all = append(all, cacheValue{api.Counter{Name: "offload_" + name, Value: n}, meaning})
	}
	add("entries", st.Entries, "Walks that the kernel repeats without the switch.")
	add("connections", st.Connections, "Connections with such a walk.")
	add("room", st.Room, "Walks that the kernel has room for.")
	add("packets", st.Packets, "Packets that passed in the kernel.")
	add("bytes", st.Bytes, "Bytes of the same packets.")
	add("dropped", st.Dropped, "Packets to forward that the kernel could not rewrite, and dropped.")
	for i, n := range st.Events {
		e := telemetry.OffloadEvent(i)
		add(e.String(), n, e.Sentence())
	}
	return all
}

// collectOffload gives the counters to Prometheus.
func (p *Answers) collectOffload(ch chan<- prometheus.Metric) {
	st := p.Switch.OffloadStats()
	gauge(ch, offloadEntries, st.Entries)
	gauge(ch, offloadConns, st.Connections)
	counter(ch, offloadPackets, st.Packets)
	counter(ch, offloadBytes, st.Bytes)
	counter(ch, offloadDropped, st.Dropped)
	for i, n := range st.Events {
		counter(ch, offloadEvents, n, telemetry.OffloadEvent(i).String())
	}
}
