package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/antrail/antrail/switchd"
	"golang.org/x/sys/unix"
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

const offloaded = "connections are offloaded to the kernel"

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
	enough.stop(t)
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
		if err := os.RemoveAll(c.SwitchDir()); err != nil {
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

// TestDroppedCapabilities: an agent that root starts has only what agents need, in all of
// its threads.
func TestDroppedCapabilities(t *testing.T) {
	node, c := upgradedNode(t)
	running := startProcess(t, node, c)
	wantReady(t, c)
	mask := uint64(0)
	for _, c := range []uint{
		unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_IPC_LOCK, unix.CAP_KILL, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE,
		unix.CAP_NET_RAW, unix.CAP_SETGID, unix.CAP_SETPCAP, unix.CAP_SETUID, unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE,
	} {
		mask |= 1 << c
	}
	want := fmt.Sprintf("CapInh: %016x CapPrm: %016[2]x CapEff: %016[2]x CapBnd: %016[2]x CapAmb: %016[1]x", 0, mask)
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", running.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // the thread has ended
		} else if err != nil {
			t.Fatal(err)
		}
		seen++
		if status := strings.Join(strings.Fields(string(text)), " "); !strings.Contains(status, want) {
			t.Errorf("%s: %s, want %s", path, status, want)
		}
	}
	if seen == 0 {
		t.Error("no thread was looked at")
	}
	wantConfinedProcess(t, switchPID(t, c))
	running.stop(t)
	wantNothingLeft(t, node, c)
}

// TestChildCapabilities: an agent that launches its switch as a child needs each of these.
func TestChildCapabilities(t *testing.T) {
	node, c := upgradedNode(t)
	for missing, want := range map[string]string{
		"dac_override,-dac_read_search": "change to the state directory",
		"setpcap":                       "bounding set: capability 0",
		"setgid":                        "groups: operation not permitted",
		"setuid":                        fmt.Sprintf("user %d: operation not permitted", switchd.ConfinedUID),
	} {
		without := startBy(t, node.Command("setpriv", "--bounding-set=-"+missing, os.Args[0]), c)
		without.wantExit(t, exitFailed)
		without.wantSaid(t, want)
	}
}
