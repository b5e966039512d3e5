package agent

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/antrail/antrail/agent/answer"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/host/preflight"
)

// A running agent's check of itself: its state, and echo requests through the switch. The requests
// go to each other Node's gateway and to some of its own pods. The check changes nothing.

const (
	// checkTime bounds all echo requests together, because they run in parallel.
	checkTime = 3 * time.Second
	// checkedPods is how many pods get echo requests at most.
	checkedPods = 32
)

// answerCheck answers GET /check, with JSON.
func (a *Agent) answerCheck(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), checkTime)
	defer cancel()
	answer.WriteJSON(w, a.check(ctx), nil)
}

// check runs all checks.
func (a *Agent) check(ctx context.Context) []preflight.Line {
	var all []preflight.Line
	for _, c := range append(a.readiness(), a.liveness()...) {
		l := preflight.Line{State: preflight.OK, Check: c.name, Found: "ok"}
		if err := c.why(); err != nil {
			l = preflight.Line{State: preflight.Fail, Check: c.name, Found: err.Error(), Remedy: "see the agent's log"}
		}
		all = append(all, l)
	}
	all = append(all, a.checkLinks(), a.checkObjects(), a.checkEdits())
	if a.ready.Load() && a.tunnel != nil {
		all = append(all, a.pathLines(a.tunnel.PathMTU)...)
	}
	peers, pods := a.gateways(), a.podTargets()
	targets := append(peers, pods...)
	askAll(ctx, targets) // in parallel: a silent target does not delay the others
	return append(append(all, peerLines(targets[:len(peers)])...), podLines(targets[len(peers):])...)
}

// checkLinks reports links that are down or gone.
func (a *Agent) checkLinks() preflight.Line {
	faults := a.LinkFaults()
	if faults != nil {
		return preflight.Line{State: preflight.Warn, Check: "links", Found: strings.Join(faults, "; "),
			Remedy: "set a link that is down up, also at the Pod's end; recreate a Pod whose link is gone; ports[].link in the configuration names links"}
	}
	return preflight.Line{State: preflight.OK, Check: "links", Found: fmt.Sprintf("%d ports are up", len(a.PortRecords()))}
}

// checkObjects reports objects that are not in force.
func (a *Agent) checkObjects() preflight.Line {
	if a.Objects == nil {
		return preflight.Line{State: preflight.OK, Check: "objects", Found: "none: the entries come from flow files"}
	}
	return objectsLine(append(a.Objects.Statuses(), a.RefusedObjects(pipeline.AnyKind)...))
}

// checkEdits reports objects with a refused edit.
func (a *Agent) checkEdits() preflight.Line {
	if text := a.RefusedEditsText(); text != "" {
		return preflight.Line{State: preflight.Warn, Check: "edits", Found: text, Remedy: "correct the object where it is defined; antrail get shows each refused edit at its object"}
	}
	return preflight.Line{State: preflight.OK, Check: "edits", Found: "none is refused"}
}

func objectsLine(all []control.Status) preflight.Line {
	var first control.Status
	wrong := 0
	for _, s := range all {
		if s.State != ledger.Installed {
			if wrong++; wrong == 1 {
				first = s
			}
		}
	}
	if wrong > 0 {
		return preflight.Line{State: preflight.Warn, Check: "objects", Found: fmt.Sprintf("%d of %d are not in force; the first, %s, is %s: %s", wrong, len(all), first.Object, first.State, first.Reason),
			Remedy: "antrail get shows all"}
	}
	return preflight.Line{State: preflight.OK, Check: "objects", Found: fmt.Sprintf("%d are in force", len(all))}
}

// pathLines report Nodes whose path takes shorter packets than Pods send. The kernel's path MTU
// tells.
func (a *Agent) pathLines(mtu func(netip.Addr) int) (lines []preflight.Line) {
	for _, n := range a.otherNodes() {
		if slices.ContainsFunc(a.config.TransportCIDRs, func(p netip.Prefix) bool { return p.Contains(n) }) {
			continue // packets for it do not go through the tunnel
		}
		if most, sent := mtu(n), a.config.Gateway.MTU; most < sent {
			lines = append(lines, preflight.Line{State: preflight.Warn, Check: "Node " + a.NodeName(n),
				Found:  fmt.Sprintf("the way to %v takes packets of %d bytes through the tunnel, and Pods send up to %d", n, most, sent),
				Remedy: "raise the MTU on the way, or set gateway.mtu and recreate the Pods; until then senders get the ICMP answer that the packet is too long"})
		}
	}
	return lines
}

// target is a destination of echo requests, with the result.
type target struct {
	name string
	addr netip.Addr
	took time.Duration
	err  error
}

func (t *target) run(ctx context.Context) { t.took, t.err = echo(ctx, t.addr) }

// askAll sends requests to all targets in parallel.
func askAll(ctx context.Context, all []target) {
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() { all[i].run(ctx) })
	}
	wg.Wait()
}

// gateways are those of the other Nodes. A request crosses this switch, the tunnel and the
// other switch.
func (a *Agent) gateways() (all []target) {
	for _, p := range a.config.Peers {
		for _, g := range p.Gateways {
			all = append(all, target{name: p.Name, addr: g})
		}
	}
	if a.config.Kubernetes != nil {
		for _, p := range a.Objects.NodeSide().Peers {
			all = append(all, target{name: p.Node, addr: p.Gateway})
		}
	}
	return all
}

func peerLines(targets []target) (lines []preflight.Line) {
	for _, t := range targets {
		l := preflight.Line{State: preflight.OK, Check: "Node " + t.name, Found: fmt.Sprintf("its gateway %s answers, in %v", t.addr, t.took.Round(time.Microsecond))}
		if t.err != nil {
			l.State, l.Found = preflight.Fail, fmt.Sprintf("its gateway %s: %v", t.addr, t.err)
			l.Remedy = "check that an agent runs there, each Node has a route to the other, and firewalls let the tunnel's packets pass; run antrail drops on both"
		}
		lines = append(lines, l)
	}
	return lines
}

// podTargets are pods of this Node. Policies let these requests pass, as they do a kubelet's.
func (a *Agent) podTargets() (all []target) {
	if a.Objects == nil {
		return nil
	}
	for _, p := range a.Objects.Pods(nil) {
		if p.OFPort != 0 && p.State == ledger.Installed && len(p.IPs) > 0 && len(all) < checkedPods {
			all = append(all, target{name: p.Object.Namespace + "/" + p.Object.Name, addr: p.IPs[0]})
		}
	}
	return all
}

func podLines(targets []target) []preflight.Line {
	if len(targets) == 0 {
		return nil
	}
	var silent []string
	for _, t := range targets {
		if t.err != nil {
			silent = append(silent, t.name)
		}
	}
	l := preflight.Line{State: preflight.OK, Check: "pods", Found: fmt.Sprintf("%d of %d that were probed answer the Node", len(targets)-len(silent), len(targets))}
	if len(silent) > 0 {
		l.State, l.Found = preflight.Warn, l.Found+"; not "+strings.Join(silent, ", ")
		l.Remedy = "if the pod answers ICMP echo at all, run antrail trace from its port"
	}
	return []preflight.Line{l}
}

// Preflight is the configuration of the checks that run on a Node before its agent does.
func Preflight(c *config.Config, cniDir, cniBin string) *preflight.Config {
	return &preflight.Config{
		Gateway: c.Gateway.Name, Tunnel: c.Tunnel.Name, TunnelPort: outerOf(c).Port, MTU: c.Gateway.MTU, Overhead: c.Overhead(),
		Underlay: c.Tunnel.LocalAddress, PodCIDRs: c.PodCIDRs, CNIDir: cniDir, CNIName: "10-antrail.conflist", CNIBin: cniBin,
	}
}
