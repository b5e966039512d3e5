package demo

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	"sigs.k8s.io/yaml"
)

// The matrix: every pod connects to every other, and to the outside host, in both address
// families. It tries each port that a server or a policy knows. The expected outcome comes
// from reading the policies of examples/web-app as Kubernetes and Antrea document them.
// That code shares nothing with package control.

// labelled are pods by their labels.
type labelled struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

func (s *labelled) takes(e end) bool {
	for k, v := range s.MatchLabels {
		if e.labels[k] != v {
			return false
		}
	}
	return e.labels != nil
}

// peer is one side of a rule.
type peer struct {
	PodSelector *labelled `json:"podSelector"`
	IPBlock     *struct {
		CIDR netip.Prefix `json:"cidr"`
	} `json:"ipBlock"`
}

func (p *peer) takes(e end) bool {
	if p.IPBlock != nil {
		return p.IPBlock.CIDR.Contains(e.address)
	}
	return p.PodSelector != nil && p.PodSelector.takes(e)
}

// rule is a rule of either kind of policy. Protocols are those other than TCP.
type rule struct {
	Action    string
	From, To  []peer
	Protocols []any
	Ports     []struct {
		Protocol string
		Port     int
	}
}

func (r *rule) takes(other end, port int) bool {
	peers := append(slices.Clone(r.From), r.To...)
	if len(r.Protocols) > 0 || len(peers) > 0 && !slices.ContainsFunc(peers, func(p peer) bool { return p.takes(other) }) {
		return false
	}
	for _, p := range r.Ports {
		if p.Protocol == "TCP" && (p.Port == 0 || p.Port == port) {
			return true
		}
	}
	return len(r.Ports) == 0
}

// policyText is a NetworkPolicy or a ClusterNetworkPolicy; all of the latter are in one
// tier here.
type policyText struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Priority        float64
		AppliedTo       []peer
		PodSelector     labelled
		PolicyTypes     []string
		Ingress, Egress []rule
	}
}

// direction is Ingress or Egress of a policy.
func (p *policyText) direction(name string) []rule {
	if name == "Egress" {
		return p.Spec.Egress
	}
	return p.Spec.Ingress
}

// passes says whether subject may have a connection with other in a direction, at other's
// or its own port.
func passes(policies []policyText, direction string, subject, other end, port int) bool {
	isolated, allowed := false, false
	for _, p := range policies { // ClusterNetworkPolicies first, by priority
		switch p.Kind {
		case "ClusterNetworkPolicy":
			if !slices.ContainsFunc(p.Spec.AppliedTo, func(a peer) bool { return a.takes(subject) }) {
				continue
			}
			for _, r := range p.direction(direction) {
				if r.takes(other, port) {
					return r.Action == "Allow"
				}
			}
		case "NetworkPolicy":
			if !p.Spec.PodSelector.takes(subject) || !slices.Contains(p.Spec.PolicyTypes, direction) {
				continue
			}
			isolated = true
			for _, r := range p.direction(direction) {
				allowed = allowed || r.takes(other, port)
			}
		}
	}
	return !isolated || allowed
}

// readPolicies reads a file of manifests.
func readPolicies(t *testing.T, file string) []policyText {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []policyText
	for _, doc := range bytes.Split(text, []byte("\n---\n")) {
		var p policyText
		if err := yaml.Unmarshal(doc, &p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	slices.SortStableFunc(all, func(a, b policyText) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Spec.Priority, b.Spec.Priority))
	})
	return all
}

// end is a pod or the outside host, which has no labels.
type end struct {
	name    string
	address netip.Addr
	labels  map[string]string
}

// ends are the pods and, at last, the outside host.
func (w *world) ends() (all []end) {
	for _, n := range w.lab.Topology.Nodes {
		for _, p := range n.Pods {
			app := p.Name[:len(p.Name)-len("-a")]
			all = append(all, end{p.Name, w.addresses[p.Name], map[string]string{"app": app, "pod": p.Name}})
		}
	}
	return append(all, end{name: "outside", address: w.addresses["outside"]})
}

// matrixPorts are the ports of policies and servers, and one more.
var matrixPorts = []int{80, 81, 443, 3306, 5001, 5432, 8080, 8081}

// outcome is a connection that was tried.
type outcome struct {
	from, to   end
	port       int
	want, have bool
	err        error
}

func TestMatrix(t *testing.T) {
	t.Parallel()
	w, err := newWorld(up(t))
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	policies := readPolicies(t, "../../examples/web-app/policies.yaml")
	if len(policies) != 4 {
		t.Fatalf("%d policies, want 4", len(policies))
	}
	for name, w := range map[string]*world{"IPv4": w, "IPv6": w.ipv6()} {
		t.Run(name, func(t *testing.T) {
			all := w.tryAll(t, policies)
			passed := 0
			for _, o := range all {
				if o.have != o.want {
					t.Errorf("%s to %s:%d passes %v, want %v (%v)", o.from.name, o.to.name, o.port, o.have, o.want, o.err)
				}
				if o.have {
					passed++
				}
			}
			t.Logf("%d of %d connections passed", passed, len(all))
			if passed < 50 || len(all)-passed < 50 {
				t.Errorf("%d of %d connections passed: a matrix with more of both was wanted", passed, len(all))
			}
		})
	}
}

// tryAll makes all connections, some at a time.
func (w *world) tryAll(t *testing.T, policies []policyText) []*outcome {
	var all []*outcome
	var running sync.WaitGroup
	slots := make(chan struct{}, 32)
	ends := w.ends()
	for _, from := range ends[:len(ends)-1] { // the outside host has no way to pods
		for _, to := range ends {
			for _, port := range matrixPorts {
				if from.name == to.name {
					continue
				}
				o := &outcome{from: from, to: to, port: port}
				o.want = passes(policies, "Egress", from, to, port) && passes(policies, "Ingress", to, from, port)
				all = append(all, o)
				slots <- struct{}{}
				running.Go(func() {
					o.have, o.err = w.try(t, o)
					<-slots
				})
			}
		}
	}
	running.Wait()
	return all
}

// try makes one connection. It passes if the server's greeting comes back, or without a
// server the refusal: both are replies. A connection that must pass has plenty of time.
func (w *world) try(t *testing.T, o *outcome) (bool, error) {
	wait := silence
	if o.want {
		wait = waitAtMost
	}
	c, err := w.dial(t.Context(), o.from.name, fmt.Sprintf("%s:%d", o.to.name, o.port), wait)
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		return true, nil
	case err != nil:
		return false, err
	}
	defer c.Close()
	g, err := readGreeting(c)
	if err == nil && g.name != o.to.name {
		err = fmt.Errorf("%s answered", g.name)
	}
	return err == nil, err
}
