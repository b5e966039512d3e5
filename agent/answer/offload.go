package answer

import (
	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/prometheus/client_golang/prometheus"
)

// Offload: packets of established connections pass in
// the kernel (ports/offload, dataplane/offload).

var (
	offloadEntries = describe("offload_entries", "Connections' directions, by TCP flags, that the kernel forwards by itself now.")
	offloadConns   = describe("offload_connections", "Connections that they are of.")
	offloadPackets = describe("offload_packets_total", "Packets that passed in the kernel.")
	offloadBytes   = describe("offload_bytes_total", "Bytes of the same packets.")
	offloadDropped = describe("offload_dropped_total", "Packets that the kernel was to forward and could not change.")
	offloadEvents  = describe("offload_events_total", "What became of them; dump-cache explains each.", "event")
)

// offloadValues is lines of dump-cache; none when offload is off.
func (p *Answers) offloadValues() (all []cacheValue) {
	st := p.Switch.OffloadStats()
	if !st.On {
		return nil
	}
	add := func(name string, n uint64, meaning string) {
		all = append(all, cacheValue{api.Counter{Name: "offload_" + name, Value: n}, meaning})
	}
	add("entries", st.Entries, "Walks that the kernel repeats by itself now.")
	add("connections", st.Connections, "Connections that they are of.")
	add("room", st.Room, "Walks that the kernel has room for.")
	add("packets", st.Packets, "Packets that passed in the kernel.")
	add("bytes", st.Bytes, "Bytes of the same packets.")
	add("dropped", st.Dropped, "Packets that the kernel was to forward and could not change.")
	for i, n := range st.Events {
		e := telemetry.OffloadEvent(i)
		add(e.String(), n, e.Sentence())
	}
	return all
}

// collectOffload hands the counters to Prometheus.
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
