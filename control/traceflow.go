package control

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
)

// Traceflows. Package agent/traceflow sends their packets and writes their status. This file has the entries that
// the packets need, and the addresses of the packets.

// TracedTag is the data plane tag of a running Traceflow.
type TracedTag struct {
	Traceflow cluster.Key
	Tag       uint8
}

// traceflowBuilder makes the entries of running Traceflows.
type traceflowBuilder struct {
	tags []TracedTag
	has  map[cluster.Key]bool // Traceflows with a wanted part
}

func (*traceflowBuilder) settled(ledger.Part, *ledger.Desired) {}

func (b *traceflowBuilder) build(c *change, w *wants) {
	for _, k := range c.keys {
		if c.now.Traceflows[k] != nil {
			w.fine(k)
		}
	}
	if !c.all && !c.touches(cluster.KindTraceflow) {
		return
	}
	wanted := map[cluster.Key]bool{}
	for _, t := range b.tags {
		wanted[t.Traceflow] = true
		d := &ledger.Desired{}
		d.AddEntries(ledger.Origin{Object: t.Traceflow, Field: "status.dataplaneTag"}, c.now.pipeline.Traceflow(t.Tag)...)
		w.want(ledger.Part{Object: t.Traceflow}, d)
	}
	for k := range b.has {
		if !wanted[k] {
			w.want(ledger.Part{Object: k}, nil)
		}
	}
	b.has = wanted
}

// SetTraceflows replaces the running Traceflows. Errors are those of Update.
func (r *Reconciler) SetTraceflows(tags []TracedTag) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Equal(r.traceflows.tags, tags) {
		return nil
	}
	r.traceflows.tags = tags
	if r.view == nil {
		return nil
	}
	r.collectWants(&change{was: r.view, now: r.view, kind: map[cluster.Kind]bool{cluster.KindTraceflow: true}})
	return r.installWaiting()
}

// Traceflows returns all Traceflows, by name.
func (r *Reconciler) Traceflows() []*cluster.Traceflow {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*cluster.Traceflow
	if r.view != nil {
		for _, k := range sortedKeys(r.view.Traceflows) {
			all = append(all, r.view.Traceflows[k])
		}
	}
	return all
}

// TraceflowRow is a Traceflow as `get traceflows` shows it.
type TraceflowRow struct {
	Status
	Source      string                  `json:"source"`      // namespace/name of a Pod
	Destination string                  `json:"destination"` // KIND/namespace/name or an address
	Trace       cluster.TraceflowStatus `json:"status"`
}

// TraceflowRows returns all Traceflows by name, with the status from of.
func (r *Reconciler) TraceflowRows(of func(*cluster.Traceflow) cluster.TraceflowStatus) []TraceflowRow {
	rows := []TraceflowRow{}
	for _, t := range r.Traceflows() {
		s, _ := r.Status(t.Key)
		s.Text = t.Key.String()
		rows = append(rows, TraceflowRow{s, t.Source.Namespace + "/" + t.Source.Name, t.Destination(), of(t)})
	}
	return rows
}

// TracedEnds are the two ends of a Traceflow's packet.
type TracedEnds struct {
	Port     uint32 // of the source; 0 if it is a Pod of another Node
	Node     string // of the source
	Src, Dst netip.Addr
	// SrcMAC and DstMAC are set if the source is a Pod of this Node.
	SrcMAC, DstMAC [6]byte
	Near           bool // the destination is a Pod of this Node
}

// TracedEnds returns those of a Traceflow. The error names the missing end. Node is set if the source has one.
func (r *Reconciler) TracedEnds(t *cluster.Traceflow) (ends TracedEnds, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view == nil {
		return ends, errNoView
	}
	return r.view.tracedEnds(t)
}

func (v *view) tracedEnds(t *cluster.Traceflow) (ends TracedEnds, err error) {
	source := v.Pod(t.Source)
	if source == nil || source.Terminated() {
		return ends, fmt.Errorf("source: %w", v.noPod(t.Source))
	}
	ends.Node = source.NodeName
	if source.HostNetwork {
		return ends, fmt.Errorf("source: the Pod %s/%s is in its Node's network, and has no port of the switch", t.Source.Namespace, t.Source.Name)
	}
	if ends.Src = inFamily(source.IPs, t.Packet.IPv6); !ends.Src.IsValid() {
		return ends, fmt.Errorf("source: the Pod %s/%s has no address of the packet's family", t.Source.Namespace, t.Source.Name)
	}
	if ends.Dst, err = v.tracedDestination(t); err != nil {
		return ends, fmt.Errorf("destination: %w", err)
	}
	if v.here[source.Key] == nil {
		return ends, nil
	}
	pod, lacks := v.localPod(source)
	if lacks != "" {
		return ends, fmt.Errorf("source: %s", lacks)
	}
	ends.Port, ends.SrcMAC, ends.DstMAC = pod.Port.No, pod.Port.MAC, v.config.Gateway.MAC
	for _, p := range v.here {
		if near, lacks := v.localPod(p); lacks == "" && slices.Contains(near.IPs, ends.Dst) {
			ends.DstMAC, ends.Near = near.Port.MAC, true
		}
	}
	return ends, nil
}

// tracedDestination is the destination address of a Traceflow's packet.
func (v *view) tracedDestination(t *cluster.Traceflow) (netip.Addr, error) {
	all, what := []netip.Addr{t.Addr}, ""
	switch {
	case t.Pod.Name != "":
		what = fmt.Sprintf("the Pod %s/%s", t.Pod.Namespace, t.Pod.Name)
		pod := v.Pod(t.Pod)
		if pod == nil || pod.Terminated() {
			return netip.Addr{}, v.noPod(t.Pod)
		}
		all = pod.IPs
	case t.Service.Name != "":
		what = fmt.Sprintf("the Service %s/%s", t.Service.Namespace, t.Service.Name)
		service := v.Service(t.Service)
		switch {
		case service == nil:
			return netip.Addr{}, v.noService(t.Service)
		case !v.config.Features.Proxy:
			return netip.Addr{}, fmt.Errorf("%s: AntreaProxy is off, so that the switch does not know it", what)
		}
		all = service.ClusterIPs
	}
	if a := inFamily(all, t.Packet.IPv6); a.IsValid() {
		return a, nil
	}
	return netip.Addr{}, fmt.Errorf("%s has no address of the packet's family", what)
}

// inFamily is the first address of a family, or an invalid one.
func inFamily(all []netip.Addr, v6 bool) netip.Addr {
	for _, a := range all {
		if a.Is6() == v6 {
			return a
		}
	}
	return netip.Addr{}
}

// FirstNode is the Node of the cluster whose name is first; "" if there is none. It acts for objects without a Node.
func (r *Reconciler) FirstNode() (name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view == nil {
		return ""
	}
	for k := range r.view.Cluster.Nodes {
		if name == "" || k.Name < name {
			name = k.Name
		}
	}
	return name
}
