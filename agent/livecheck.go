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

// A look at a running agent, by itself: what its state tells, and echo requests
// through the switch to each other Node's gateway and to some of its pods. It
// changes nothing.

const (
	// checkTime bounds all echo requests together; they go out at once.
	checkTime = 3 * time.Second
	// checkedPods is how many pods are asked at most.
	checkedPods = 32
)

// answerCheck answers GET /check, with JSON.
func (a *Agent) answerCheck(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), checkTime)
	defer cancel()
	answer.WriteJSON(w, a.check(ctx), nil)
}

// check looks at everything.
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
	askAll(ctx, targets) // at once: who does not answer takes no time from others
	return append(append(all, peerLines(targets[:len(peers)])...), podLines(targets[len(peers):])...)
}

// checkLinks looks for links that are down or gone.
func (a *Agent) checkLinks() preflight.Line {
	faults := a.LinkFaults()
	if faults != nil {
		return preflight.Line{State: preflight.Warn, Check: "links", Found: strings.Join(faults, "; "),
			Remedy: "set a link up that is down, also at the Pod's end; have a Pod made anew whose link is gone; ports[].link of the configuration names links"}
	}
	return preflight.Line{State: preflight.OK, Check: "links", Found: fmt.Sprintf("%d ports are up", len(a.PortRecords()))}
}

// checkObjects looks for objects that are not in force.
func (a *Agent) checkObjects() preflight.Line {
	if a.Objects == nil {
		return preflight.Line{State: preflight.OK, Check: "objects", Found: "none: the entries come from flow files"}
	}
	return objectsLine(append(a.Objects.Statuses(), a.RefusedObjects(pipeline.AnyKind)...))
}

// checkEdits looks for objects of which an edit is refused.
func (a *Agent) checkEdits() preflight.Line {
	if text := a.RefusedEditsText(); text != "" {
		return preflight.Line{State: preflight.Warn, Check: "edits", Found: text, Remedy: "mend the object where it stands; antrail get shows each refused edit at its object"}
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

// pathLines name the Nodes that the tunnel takes shorter packets to than Pods send, by
// what the kernel knows of the way.
func (a *Agent) pathLines(mtu func(netip.Addr) int) (lines []preflight.Line) {
	for _, n := range a.otherNodes() {
		if slices.ContainsFunc(a.config.TransportCIDRs, func(p netip.Prefix) bool { return p.Contains(n) }) {
			continue // without the tunnel
		}
		if most, sent := mtu(n), a.config.Gateway.MTU; most < sent {
			lines = append(lines, preflight.Line{State: preflight.Warn, Check: "Node " + a.NodeName(n),
				Found:  fmt.Sprintf("the way to %v takes packets of %d bytes through the tunnel, and Pods send up to %d", n, most, sent),
				Remedy: "raise the MTU on the way, or set gateway.mtu and make the Pods anew; until then senders are answered that it is too long"})
		}
	}
	return lines
}

// target is somebody to send an echo request to, and what came of it.
type target struct {
	name string
	addr netip.Addr
	took time.Duration
	err  error
}

func (t *target) run(ctx context.Context) { t.took, t.err = echo(ctx, t.addr) }

// askAll sends to all at once.
func askAll(ctx context.Context, all []target) {
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() { all[i].run(ctx) })
	}
	wg.Wait()
}

// gateways are those of the other Nodes: the way there and back is this switch, the
// tunnel and that switch.
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
			l.Remedy = "is an agent running there, has each Node a route to the other, do firewalls between them let the tunnel's packets pass, and what has antrail drops on either?"
		}
		lines = append(lines, l)
	}
	return lines
}

// podTargets are pods of this Node, which are asked as a kubelet would: policies let
// that pass.
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
	l := preflight.Line{State: preflight.OK, Check: "pods", Found: fmt.Sprintf("%d of %d that were asked answer the Node", len(targets)-len(silent), len(targets))}
	if len(silent) > 0 {
		l.State, l.Found = preflight.Warn, l.Found+"; not "+strings.Join(silent, ", ")
		l.Remedy = "does the pod answer ICMP echo at all? Then antrail trace from its port tells more"
	}
	return []preflight.Line{l}
}

// Preflight is what a Node is checked for before this configuration's agent runs.
func Preflight(c *config.Config, cniDir, cniBin string) *preflight.Config {
	return &preflight.Config{
		Gateway: c.Gateway.Name, Tunnel: c.Tunnel.Name, TunnelPort: outerOf(c).Port, MTU: c.Gateway.MTU, Overhead: c.Overhead(),
		Underlay: c.Tunnel.LocalAddress, PodCIDRs: c.PodCIDRs, CNIDir: cniDir, CNIName: "10-antrail.conflist", CNIBin: cniBin,
	}
}
