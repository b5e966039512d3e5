package agent

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/antrail/antrail/switchd"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// deployedCapabilities are those of the agent's container, by the manifest, as
// setpriv(1) writes them.
func deployedCapabilities(t *testing.T) (all []string) {
	t.Helper()
	text, err := os.ReadFile("../deploy/kustomize/base/daemonset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var d appsv1.DaemonSet
	if err := yaml.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		switch s := c.SecurityContext; {
		case c.Name == "agent":
			for _, one := range s.Capabilities.Add {
				all = append(all, "+"+strings.ToLower(string(one)))
			}
		case len(s.Capabilities.Add) > 0 || s.RunAsUser == nil || *s.RunAsUser != switchd.ConfinedUID:
			t.Errorf("container %s has privilege: %+v", c.Name, s)
		}
	}
	return all
}

const offloaded = "connections between pods are offloaded to the kernel"

// TestCapabilities: those of the manifest are enough, and each is needed.
func TestCapabilities(t *testing.T) {
	w := newTwoContainers(t)
	node, c := w.node, w.c
	all := deployedCapabilities(t)
	if len(all) != 4 {
		t.Fatalf("the manifest has %v", all)
	}
	w.startSwitch(t, "")
	enough := w.startAgent(t, "", all)
	wantReady(t, c)
	enough.wantSaid(t, offloaded)
	if ports := portsOpen(t, c); !slices.Contains(ports, "36 client-a-1 afpacket") {
		t.Errorf("ports %v", ports)
	}
	enough.Process.Signal(syscall.SIGTERM)
	enough.wantExit(t, 0)
	wantNothingLeft(t, node, c)

	for missing, want := range map[string]string{
		"+chown":     "lchown",
		"+net_admin": "make the device: operation not permitted",
		"+net_raw":   "port cannot be opened",
		"+sys_admin": "map create: operation not permitted",
	} {
		i := slices.Index(all, missing)
		if i < 0 {
			t.Errorf("the manifest has not %s", missing)
			continue
		}
		if err := os.RemoveAll(c.switchDir()); err != nil {
			t.Fatal(err)
		}
		sw := w.startSwitch(t, "")
		without := w.startAgent(t, "", slices.Delete(slices.Clone(all), i, i+1))
		without.wantSaid(t, want)
		without.Process.Signal(syscall.SIGTERM)
		<-without.ended
		sw.Process.Kill()
		<-sw.ended
	}
}
