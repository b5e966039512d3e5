package control

import (
	"github.com/antrail/antrail/tables"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
)

// TrafficControls mirror the traffic of some Pods to a port, or redirect it to one port and receive it from
// another.
//
// If several TrafficControls choose a Pod, the first by name applies, in any order of arrival. The ports must
// exist: ports of the switch and devices, by name.

// trafficControlBuilder makes the entries of TrafficControls.
type trafficControlBuilder struct{}

func (trafficControlBuilder) settled(ledger.Part, *ledger.Desired) {}

func (b trafficControlBuilder) build(c *change, w *wants) {
	if !c.all && !c.podsMoved() && !c.touches(cluster.KindTrafficControl, cluster.KindNamespace) {
		return
	}
	for _, k := range c.keys {
		if k.Kind == cluster.KindTrafficControl && c.now.TrafficControls[k] == nil {
			w.want(ledger.Part{Object: k}, nil)
		}
	}
	free := c.now.connected()
	for _, k := range sortedKeys(c.now.TrafficControls) {
		tc := c.now.TrafficControls[k]
		if !c.now.config.Features.TrafficControl {
			w.want(ledger.Part{Object: k}, nil)
			w.ignore(k, "the feature TrafficControl is off")
			continue
		}
		value, why := c.now.trafficControl(tc)
		if why != "" {
			w.want(ledger.Part{Object: k}, nil)
			w.hold(k, "%s", why)
			continue
		}
		var chosen []*cluster.Pod
		chosen, free = c.now.takeChosen(tc.AppliedTo, free)
		b.trafficControl(c.now, tc, value, podPortNumbers(c.now, chosen), w)
	}
}

func podPortNumbers(v *view, pods []*cluster.Pod) (ports []uint32) {
	for _, p := range pods {
		pod, _ := v.localPod(p)
		ports = append(ports, pod.Port.No)
	}
	return ports
}

func (trafficControlBuilder) trafficControl(v *view, tc *cluster.TrafficControl, value tables.TrafficControl, pods []uint32, w *wants) {
	k := tc.Key
	d := &ledger.Desired{}
	value.PodPorts = pods
	d.AddEntries(ledger.Origin{Object: k, Field: "spec.appliedTo"}, v.pipeline.TrafficControl(value)...)
	if value.Return != nil {
		d.AddEntries(ledger.Origin{Object: k, Field: "spec.returnPort"}, v.pipeline.ReturnPort(*value.Return)...)
	}
	w.fine(k)
	w.want(ledger.Part{Object: k}, d)
}

// trafficControl is a TrafficControl as a value for the tables, without Pods, or what it lacks.
func (v *view) trafficControl(tc *cluster.TrafficControl) (value tables.TrafficControl, lacks string) {
	value = tables.TrafficControl{
		Redirect: tc.Redirect,
		Ingress:  tc.Direction != cluster.DirectionEgress,
		Egress:   tc.Direction != cluster.DirectionIngress,
	}
	target, lacks := v.trafficPort(tc.TargetPort)
	value.Target = target
	if lacks == "" && tc.ReturnPort != nil {
		var back tables.Port
		back, lacks = v.trafficPort(*tc.ReturnPort)
		value.Return = &back
	}
	return value, lacks
}

// trafficPort finds the port that a TrafficControl names.
func (v *view) trafficPort(p cluster.TrafficPort) (port tables.Port, lacks string) {
	if p.Type != cluster.OVSInternalPort && p.Type != cluster.DevicePort {
		return port, "this Node's switch has no " + string(p.Type) + " port to " + p.RemoteIP.String()
	}
	port, ok := portNamed(v.NodeConfig(v.node), p.Name)
	if !ok {
		return port, "this Node's switch has no port " + p.Name
	}
	return port, ""
}

// ReturnPort is the port where packets come back that were redirected to a port. The redirection is that of a
// TrafficControl or, with the zero key, that of application-layer policies.
func (r *Reconciler) ReturnPort(to uint32, by cluster.Key) (back tables.Port, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view == nil {
		return back, false
	}
	if tc := r.view.TrafficControls[by]; tc != nil {
		value, lacks := r.view.trafficControl(tc)
		if lacks == "" && value.Return != nil {
			return *value.Return, true
		}
		return back, false
	}
	c := &r.view.config
	return c.L7Return, c.Features.L7Policy && c.L7Target.No == to
}

// Made is a port that the switch makes, because objects send traffic to its name and no device has it.
type Made struct {
	// Returns says that packets sent there come back, at this port or another. It holds for a
	// redirect, not for a mirror.
	Returns bool
}

// MadePorts returns the ports that the switch of any Node makes, by name: those of TrafficControls with type
// ovsInternal, and those of application-layer policies.
func MadePorts(c *cluster.Cluster) map[string]Made {
	all := map[string]Made{l7TargetPort: {Returns: true}, l7ReturnPort: {Returns: true}}
	for _, tc := range c.TrafficControls {
		for _, p := range []*cluster.TrafficPort{&tc.TargetPort, tc.ReturnPort} {
			if p != nil && p.Type == cluster.OVSInternalPort {
				all[p.Name] = Made{Returns: tc.Redirect || all[p.Name].Returns}
			}
		}
	}
	return all
}
