//go:build k8s

package agent

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/kubetest"
)

// An agent without Node against kube-apiserver and etcd: make test-k8s.

func realCluster(t *testing.T) *kubetest.Real {
	t.Helper()
	api := kubetest.NewReal(t)
	roles, err := os.ReadFile("../deploy/kustomize/base/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	api.Apply(string(roles))
	api.Apply(clusterObjects)
	return api
}

// untilServerService waits for the Service "kubernetes". The API server makes it
// some time after it answers, so a dump taken before may lack it.
func (a *kubeAgent) untilServerService() {
	a.until("the API server's own Service", func() bool {
		return slices.ContainsFunc(dumped(a.Pipeline), func(l string) bool { return strings.Contains(l, "nw_dst=10.96.0.1,tp_dst=443") })
	})
}

// TestRealAgent: an agent learns its Node and its Services' range, follows
// changes, and keeps everything while the API server is started again.
func TestRealAgent(t *testing.T) {
	api := realCluster(t)
	c := kubeConfig(t, api)
	c.Kubernetes.ServiceCIDRs = nil
	a := startKube(t, c, nil)
	a.until("the first state", a.synced)
	if side := a.Objects.NodeSide(); len(side.ServiceCIDRs) != 1 || side.ServiceCIDRs[0].String() != "10.96.0.0/16" || len(side.Peers) != 2 {
		t.Errorf("the Node is asked for %+v", side)
	}
	isolated := func(n int) func() bool {
		return func() bool { return entriesOf(a.Pipeline, "IngressDefaultRule") == n }
	}
	a.until("the policy", isolated(2))
	a.untilServerService()
	services := entriesOf(a.Pipeline, "ServiceLB")
	api.Apply("apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n")
	a.until("the Service", func() bool { return entriesOf(a.Pipeline, "ServiceLB") > services })
	want := dumped(a.Pipeline)
	slices.Sort(want)
	api.Stop()
	a.until("the failure", func() bool {
		for _, s := range a.live.api.Status() {
			if s.Faults > 0 {
				return true
			}
		}
		return false
	})
	api.Start()
	if got := dumped(a.Pipeline); !sameSorted(got, want) {
		t.Errorf("%d lines while the API was away, %d before: %s", len(got), len(want), apart(got, want))
	}
	api.Delete("networking.k8s.io/v1", "NetworkPolicy", "default", "web")
	a.until("the policy's end", isolated(1))
	api.Delete("v1", "Pod", "default", "web-a")
	a.until("the pod's end", func() bool { return len(a.Objects.Pods(nil)) == 0 })
}

// TestRealAgentRestart: an agent that is started while the API server is down
// begins as the one before, and has what changed when it is back.
func TestRealAgentRestart(t *testing.T) {
	api := realCluster(t)
	c := kubeConfig(t, api)
	a := startKube(t, c, nil)
	a.until("the first state", a.synced)
	a.untilServerService()
	kept := keep(t, a.Agent)
	want := dumped(a.Pipeline)
	slices.Sort(want)
	a.end()
	api.Delete("networking.k8s.io/v1", "NetworkPolicy", "default", "web")
	api.Stop()
	again := *c
	b := startKube(t, &again, kept)
	b.log.want(t, "using the stored facts")
	if got := dumped(b.Pipeline); !sameSorted(got, want) {
		t.Errorf("it began with %d lines, not the %d of the agent before: %s", len(got), len(want), apart(got, want))
	}
	api.Start()
	b.until("the API", b.synced)
	b.until("the policy's end", func() bool { return entriesOf(b.Pipeline, "IngressDefaultRule") == 1 })
}

// apart are the lines of one dump that the other lacks, with + and -.
func apart(got, want []string) string {
	var lines []string
	for _, l := range got {
		if !slices.Contains(want, l) {
			lines = append(lines, "+ "+l)
		}
	}
	for _, l := range want {
		if !slices.Contains(got, l) {
			lines = append(lines, "- "+l)
		}
	}
	return strings.Join(lines, "\n")
}
