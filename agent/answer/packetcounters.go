package answer

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/prometheus/client_golang/prometheus"
)

// Packet counters that add up to the packet (dataplane/packetcounters.go).

// packetCountersRecord are the counters, with the fault if they do not add up.
func (p *Answers) packetCountersRecord() *api.PacketCountersRecord {
	s := p.Switch.PacketCounters()
	r := p.recordPacketCounters(s)
	if err := s.Check(); err != nil {
		r.Fault = err.Error()
	}
	return r
}

// recordPacketCounters adds the ports' names to the counters.
func (p *Answers) recordPacketCounters(s *telemetry.SwitchPacketCounters) *api.PacketCountersRecord {
	names := p.Switch.Names()
	r := &api.PacketCountersRecord{Ports: []api.PortPacketCounters{}, Own: s.Own, Gone: s.Gone, Total: s.Total}
	drivers := map[uint32]telemetry.PortStats{}
	for _, st := range p.Switch.Ports() {
		drivers[st.No] = st
	}
	for i := range s.Ports {
		x := &s.Ports[i]
		d := drivers[x.No]
		r.Ports = append(r.Ports, api.PortPacketCounters{
			No: x.No, Name: cmp.Or(names.Port(x.No), x.Name), PacketCounters: x.PacketCounters,
			KernelReceived: d.ByKernel.RxPackets, KernelSent: d.ByKernel.TxPackets, Joined: d.RxJoined, Split: d.TxSplit,
		})
	}
	return r
}

func (p *Answers) writePacketCounters(w io.Writer, _ query) error {
	r := p.packetCountersRecord()
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "PORT\tRECEIVED\t+ MADE\t+ COPIED\t+ CUT\t= QUEUED\t+ AGENT\t+ DROPPED\t+ HELD\tHANDED\t= SENT\t+ REFUSED\tKERNEL RX\tTX\tJOINED\tSPLIT\t")
	line := func(who string, s *telemetry.PacketCounters, beside ...uint64) {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t", who, s.Received, s.Made, s.Copied, s.Cut,
			s.Queued, s.Agent, s.Dropped, s.Held, s.Handed, s.Sent, s.Refused)
		if beside == nil { // a row with fewer cells would end the columns
			fmt.Fprint(t, strings.Repeat("-\t", 4))
		}
		for _, n := range beside {
			fmt.Fprintf(t, "%d\t", n)
		}
		fmt.Fprintln(t)
	}
	var rx, tx, joined, split uint64
	for i := range r.Ports {
		x := &r.Ports[i]
		line(x.Name, &x.PacketCounters, x.KernelReceived, x.KernelSent, x.Joined, x.Split)
		rx, tx, joined, split = rx+x.KernelReceived, tx+x.KernelSent, joined+x.Joined, split+x.Split
	}
	line("(packet-outs)", &r.Own)
	line("(ports gone)", &r.Gone)
	line("total", &r.Total, rx, tx, joined, split)
	if err := t.Flush(); err != nil || r.Fault == "" {
		return err
	}
	_, err := fmt.Fprintln(w, "these sums do not agree:\n"+r.Fault)
	return err
}

var portCounters = describe("port_sum_packets", "Packet counters by port: received + made + copied + cut = queued + agent + dropped + held, of those that entered by the port; handed = sent + refused, of those that left by it. A scrape stops no worker, so that terms differ by the packets under way (antrail drops --sums has them at one moment). The port \"\" is the switch's own packet-outs.", "port", "term")

// collectPacketCounters collects the terms of every port. It does not stop the workers.
func (p *Answers) collectPacketCounters(ch chan<- prometheus.Metric) {
	r := p.recordPacketCounters(p.Switch.RunningPacketCounters())
	port := func(name string, s *telemetry.PacketCounters) {
		for term, n := range map[string]float64{
			"received": float64(s.Received), "made": float64(s.Made), "copied": float64(s.Copied), "cut": float64(s.Cut),
			"queued": float64(s.Queued), "agent": float64(s.Agent), "dropped": float64(s.Dropped), "held": float64(s.Held),
			"handed": float64(s.Handed), "sent": float64(s.Sent), "refused": float64(s.Refused),
		} {
			gauge(ch, portCounters, n, name, term)
		}
	}
	for i := range r.Ports {
		port(r.Ports[i].Name, &r.Ports[i].PacketCounters)
	}
	port("", &r.Own)
}
