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

// Ports drop packets before or behind the pipeline: a full ring, a link that is down, a tunnel
// packet from an unknown peer. They only count drops, so the drops since the last read become
// one record. A port keeps the last packet that it did not send, or that its tunnel refused.

// portLosses are the ports' drop counters at the last read, by number and reason.
type portLosses map[uint32]map[string]uint64

// since returns the drops since the last read. ports are all ports of the switch.
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

// isSent says whether a reason is one of packets on their way out.
func isSent(reason string) bool {
	return ports.Sends(reason) || reason == tunnelDropped
}

// refusal is a packet that an entry sent to the agent instead of dropping it.
type refusal struct {
	pi  *telemetry.PacketIn
	why packetin.Refusal
	by  *tables.Verdict // of a policy
	at  time.Time
}

// refusalRoom is how many refusals wait until the log reads them.
const refusalRoom = 256

// noteRefusal records a packet that came to the agent. It never waits for objects.
func (l *dropLog) noteRefusal(pi *telemetry.PacketIn, why packetin.Refusal, by *tables.Verdict) {
	l.pending.Lock()
	defer l.pending.Unlock()
	if len(l.refusals) == refusalRoom {
		l.unkept++
		return
	}
	l.refusals = append(l.refusals, refusal{pi, why, by, time.Now()})
}

// takeRefusals returns the refusals since the last call. unkept is how many found no room so
// far.
func (l *dropLog) takeRefusals() (all []api.DroppedPacket, unkept uint64) {
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
			r.Entry.Objects = l.objectsDeciding(pi, some[i].by)
		}
		all = append(all, r)
	}
	return all, unkept
}

// objectsDeciding are the policy that decided on a packet, or the policies that isolate the
// Pod, or the Services that the packet addressed. All of them share the entry that sent it to
// the agent.
func (l *dropLog) objectsDeciding(pi *telemetry.PacketIn, by *tables.Verdict) (all []trace.Object) {
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
