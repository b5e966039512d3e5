package agent

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/antrail/antrail/dataplane"
	"github.com/prometheus/client_golang/prometheus"
)

// What became of packets, as sums that agree to the packet (dataplane/sums.go).

// SumsRecord is all sums of the switch, at one moment.
type SumsRecord struct {
	Ports []PortSums `json:"ports"`
	// Own is what the switch makes itself, Gone the sums of ports that are gone.
	Own   dataplane.Sums `json:"own"`
	Gone  dataplane.Sums `json:"gone"`
	Total dataplane.Sums `json:"total"`
	// Fault says where sums do not agree; empty: they do.
	Fault string `json:"fault,omitempty"`
}

// PortSums is the sums of a port. What the kernel forwards by itself comes and
// goes beside them.
type PortSums struct {
	No   uint32 `json:"ofPort"`
	Name string `json:"name"`
	dataplane.Sums
	KernelReceived uint64 `json:"kernelReceived,omitempty"`
	KernelSent     uint64 `json:"kernelSent,omitempty"`
	// Joined is packets beyond the first that came in one frame from the wire of a
	// tunnel, Parted those that frames were cut into for it.
	Joined uint64 `json:"joined,omitempty"`
	Parted uint64 `json:"parted,omitempty"`
}

// sumsRecord is sums that agree, or the fault.
func (p *pipeline) sumsRecord() *SumsRecord {
	s := p.sw.Sums()
	r := p.recordSums(s)
	if err := s.Check(); err != nil {
		r.Fault = err.Error()
	}
	return r
}

// recordSums gives sums their names.
func (p *pipeline) recordSums(s *dataplane.SwitchSums) *SumsRecord {
	names := p.sw.Names()
	r := &SumsRecord{Ports: []PortSums{}, Own: s.Own, Gone: s.Gone, Total: s.Total}
	drivers := map[uint32]dataplane.PortStats{}
	for _, st := range p.sw.Ports() {
		drivers[st.No] = st
	}
	for i := range s.Ports {
		x := &s.Ports[i]
		d := drivers[x.No]
		r.Ports = append(r.Ports, PortSums{
			No: x.No, Name: cmp.Or(names.Port(x.No), x.Name), Sums: x.Sums,
			KernelReceived: d.ByKernel.RxPackets, KernelSent: d.ByKernel.TxPackets, Joined: d.RxJoined, Parted: d.TxParted,
		})
	}
	return r
}

func (p *pipeline) writeSums(w io.Writer, _ query) error {
	r := p.sumsRecord()
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "PORT\tRECEIVED\t+ MADE\t+ COPIED\t+ CUT\t= QUEUED\t+ AGENT\t+ DROPPED\t+ HELD\tHANDED\t= SENT\t+ REFUSED\tKERNEL RX\tTX\tJOINED\tPARTED\t")
	line := func(who string, s *dataplane.Sums, beside ...uint64) {
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
	var rx, tx, joined, parted uint64
	for i := range r.Ports {
		x := &r.Ports[i]
		line(x.Name, &x.Sums, x.KernelReceived, x.KernelSent, x.Joined, x.Parted)
		rx, tx, joined, parted = rx+x.KernelReceived, tx+x.KernelSent, joined+x.Joined, parted+x.Parted
	}
	line("(packet-outs)", &r.Own)
	line("(ports gone)", &r.Gone)
	line("total", &r.Total, rx, tx, joined, parted)
	if err := t.Flush(); err != nil || r.Fault == "" {
		return err
	}
	_, err := fmt.Fprintln(w, "these sums do not agree:\n"+r.Fault)
	return err
}

var portSums = describe("port_sum_packets", "What became of packets: received + made + copied + cut = queued + agent + dropped + held, of those that entered by the port; handed = sent + refused, of those that left by it. A scrape stops no worker, so that terms differ by the packets under way (antrail drops --sums has them at one moment). The port \"\" is the switch's own packet-outs.", "port", "term")

// collectSums collects the terms of every port. A scrape stops nobody.
func (p *pipeline) collectSums(ch chan<- prometheus.Metric) {
	r := p.recordSums(p.sw.RunningSums())
	port := func(name string, s *dataplane.Sums) {
		for term, n := range map[string]float64{
			"received": float64(s.Received), "made": float64(s.Made), "copied": float64(s.Copied), "cut": float64(s.Cut),
			"queued": float64(s.Queued), "agent": float64(s.Agent), "dropped": float64(s.Dropped), "held": float64(s.Held),
			"handed": float64(s.Handed), "sent": float64(s.Sent), "refused": float64(s.Refused),
		} {
			gauge(ch, portSums, n, name, term)
		}
	}
	for i := range r.Ports {
		port(r.Ports[i].Name, &r.Ports[i].Sums)
	}
	port("", &r.Own)
}
