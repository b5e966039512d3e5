package pipeline

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/packetin"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/switchd/local"
)

// The sentence comes from the walk. The packet's registers have the conjunction ids of deciding
// rules; otherwise the objects behind an entry decided.

// teller reads one trace.
type teller struct {
	*asking
	t      *telemetry.Trace
	chosen *telemetry.Step // the step that chose an endpoint; nil: none
	back   *givenBack      // receives a redirected packet, to be walked
}

// way says where the packet went: past the switch to the Node's kernel, nowhere, or out of the
// switch.
func (r teller) way() api.WhyWay {
	w := api.WhyWay{What: r.what(), Endpoint: r.endpoint(), Decisions: r.decisions()}
	switch {
	case r.answeredByNode():
		w.Ends = []string{"it is for the Node itself, whose kernel answers before the switch"}
		w.Advice = r.listening()
	case r.withoutPort(&r.to.place):
		w.Denied, w.Advice = fmt.Sprintf("%s has no port in this Node's switch", &r.to), "antrail get pods shows the Pod's state"
	case len(r.t.Verdict.Outputs) == 0:
		w.Denied, w.Advice = r.denial(&w)
		w.Met = r.p.Met(r.lastEntry())
	default:
		r.leaves(&w)
	}
	if f, broken := r.p.LinkFault(r.from.place.Port); broken && w.Denied == "" && r.t.Live.Port == r.from.place.Port {
		w.Ends, w.Advice = append(w.Ends, fmt.Sprintf("but %s sends nothing to the switch: its %s", &r.from, f.What)), f.Next
	}
	return w
}

// answeredByNode says whether a packet for this Node came from its own gateway. The kernel
// answers it before the switch.
func (r teller) answeredByNode() bool {
	to := &r.to.place
	return r.chosen == nil && to.Object.Kind == cluster.KindNode && to.Node == r.self.Node &&
		r.t.Live.Port == r.self.Gateway.No && !r.noEndpoint()
}

// listening is the advice about a connection to the Node itself.
func (r teller) listening() string {
	return fmt.Sprintf("if it still fails, check that a process listens there (ss -ltnu on %s), and that the Node's firewall lets it in", r.self.Node)
}

// server is the end that answers: the endpoint if one was chosen, otherwise the second end.
func (r teller) server() (name string, port uint16) {
	if a, ok := r.endpointAddr(); ok {
		e := r.someone(a.Addr())
		return e.String(), a.Port()
	}
	return r.to.String(), r.to.port
}

func (r teller) endpointAddr() (netip.AddrPort, bool) {
	if r.chosen == nil {
		return netip.AddrPort{}, false
	}
	return local.EndpointOf(&r.chosen.Group.Buckets[r.chosen.Bucket])
}

// endpoint is the chosen endpoint with its Pod.
func (r teller) endpoint() string {
	a, ok := r.endpointAddr()
	if !ok {
		return ""
	}
	if e := r.someone(a.Addr()); e.place.Object.Kind == cluster.KindPod {
		return fmt.Sprintf("%s (%s)", a, e.String())
	}
	return a.String()
}

// what describes the traffic: tcp 80 from default/client-a to default/web-a.
func (r teller) what() string {
	to, _ := r.server()
	if service := r.service(); service != "" && r.chosen != nil {
		to += " by " + service
	}
	return fmt.Sprintf("%s from %s to %s", r.dial(), &r.from, to)
}

// dial is the protocol with the port that policies see.
func (r teller) dial() string {
	_, port := r.server()
	name := strings.ToLower(packetin.ProtocolNames[r.proto])
	if r.proto == packet.ProtoICMP || r.proto == packet.ProtoICMPv6 {
		return name
	}
	return fmt.Sprintf("%s %d", name, port)
}

// service is the Service that the packet addressed; "" for none.
func (r teller) service() string {
	for _, o := range r.origins("ServiceLB") {
		if o.Object.Kind == cluster.KindService {
			return objectText(o.Object)
		}
	}
	return ""
}

// origins are the objects behind the walk's entries of one table; "" for all tables.
func (r teller) origins(table string) (all []ledger.Origin) {
	for i := range r.t.Steps {
		s := &r.t.Steps[i]
		if s.Kind == telemetry.StepEntry && s.Entry != nil && (table == "" || TableName(r.t.Names, s.Table) == table) {
			all = append(all, r.p.Objects.OriginsOf(s.Entry)...)
		}
	}
	return all
}
