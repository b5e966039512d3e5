package pipeline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/packetin"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tables"
	"github.com/antrail/antrail/trace"
)

// What ports lose before the pipeline or behind it: a full ring, a link that is
// down, a tunnel packet from nobody known. Ports only count; what was counted since
// the last look is one record. Of what a port does not send, and a tunnel refuses, the
// last packet is kept.

// portLosses are what ports had dropped at the last look, by number and reason.
type portLosses map[uint32]map[string]uint64

// since is what ports, which are all of the switch, lost since the last look.
func (l portLosses) since(p *Pipeline, ports []telemetry.PortStats, names *Walker, now time.Time) (all []api.DroppedPacket) {
	there := map[uint32]bool{}
	for _, s := range ports {
		there[s.No] = true
		before := l[s.No]
		for _, reason := range slices.Sorted(maps.Keys(s.Reasons)) {
			if n := s.Reasons[reason]; n > before[reason] {
				all = append(all, portDrop(p, names, &s, reason, n-before[reason], now))
			}
		}
		l[s.No] = s.Reasons
	}
	maps.DeleteFunc(l, func(no uint32, _ map[string]uint64) bool { return !there[no] })
	return all
}

func portDrop(p *Pipeline, names *Walker, s *telemetry.PortStats, reason string, n uint64, now time.Time) api.DroppedPacket {
	why := portLoss(reason)
	r := api.DroppedPacket{Time: now, Packets: n, Port: names.port(p.Switch.Names(), s.No), Reason: why.Name, Meaning: why.Meaning, Leaving: isSent(reason)}
	r.Port.Name = cmp.Or(r.Port.Name, s.Name)
	if x := p.Switch.DropSample(s.No, reason); x.Length > 0 {
		r.Length, r.Frame = x.Length, x.Head
		if r.Leaving {
			r.Tunnel, r.Packet = tunnelOf(&packet.Tunnel{Dst: x.Source}), trace.Summary(wholeOf(x.Head, x.Length))
			return r
		}
		r.Tunnel, r.Packet = tunnelOf(&packet.Tunnel{Src: x.Source}), fmt.Sprintf("%d bytes", x.Length)
	}
	return r
}

// isSent says whether a port loses packets for a reason on their way out.
func isSent(reason string) bool {
	return ports.Sends(reason) || reason == tunnelDropped
}

// refusal is a packet that the agent was sent instead of its being dropped.
type refusal struct {
	pi  *telemetry.PacketIn
	why packetin.Refusal
	by  *tables.Verdict // of a policy
	at  time.Time
}

// refusalRoom is how many of them wait to be taken over.
const refusalRoom = 256

// refuse notes a packet that came to the agent. It never waits for objects.
func (l *dropLog) refuse(pi *telemetry.PacketIn, why packetin.Refusal, by *tables.Verdict) {
	l.pending.Lock()
	defer l.pending.Unlock()
	if len(l.refusals) == refusalRoom {
		l.unkept++
		return
	}
	l.refusals = append(l.refusals, refusal{pi, why, by, time.Now()})
}

// droppedAtPorts are those that came since the last look. Unkept is how many there was no
// room for, ever.
func (l *dropLog) droppedAtPorts() (all []api.DroppedPacket, unkept uint64) {
	l.pending.Lock()
	some := l.refusals
	l.refusals = nil
	unkept = l.unkept
	l.pending.Unlock()
	for i := range some {
		pi := some[i].pi
		p := telemetry.DroppedPacket{Port: pi.InPort, Table: pi.Table, Entry: pi.Entry, CT: pi.CT, Length: pi.Length}
		r := l.record(&p, some[i].at)
		why := refusalReasons[some[i].why]
		r.Reason, r.Meaning = why.Name, why.Meaning
		r.Table = TableName(l.p.Switch.Names(), pi.Table)
		r.Frame = append(trace.Bytes(nil), pi.Frame[:min(len(pi.Frame), telemetry.DroppedBytes)]...)
		l.describe(&r)
		if r.Entry != nil && l.p.Objects != nil {
			r.Entry.Objects = l.deciding(pi, some[i].by)
		}
		all = append(all, r)
	}
	return all, unkept
}

// deciding is the policy that has decided on a packet, or those that isolate the
// Pod, or the Services that it was for. The entry that sent it to the agent is that
// of all.
func (l *dropLog) deciding(pi *telemetry.PacketIn, by *tables.Verdict) (all []trace.Object) {
	objects := l.p.Objects
	if by == nil {
		for _, k := range objects.ServicesAt(flow.AddrIn(&pi.Key, flow.IPDst, flow.IPv6Dst)) {
			all = append(all, trace.Object{Object: k.String()})
		}
		return all
	}
	if by.Rule != 0 {
		if r := objects.RuleByID(by.Rule); r != nil {
			all = append(all, trace.Object{Object: r.Key.Policy.String(), Rule: r.Title()})
		}
		return all
	}
	port := pi.InPort
	if by.Direction == tables.Ingress {
		port = uint32(tables.TargetOFPortField.Get(&pi.Key).Lo)
	}
	if pod, ok := objects.PodAt(port); ok {
		for _, o := range objects.IsolatedBy(pod, by.Direction == tables.Ingress) {
			all = append(all, trace.Object{Object: o.Object.String(), Field: o.Field})
		}
	}
	return all
}
