package demo

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/antrail/antrail/lab"
)

// exampleAnd is a directory of examples/web-app with texts of files replaced, and with
// more objects, "" for none.
func exampleAnd(t *testing.T, changes map[string]*strings.Replacer, more string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../examples/web-app")); err != nil {
		t.Fatal(err)
	}
	for file, change := range changes {
		name := filepath.Join(dir, file)
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		changed := []byte(change.Replace(string(text)))
		if err := os.WriteFile(name, changed, 0o600); err != nil || bytes.Equal(text, changed) {
			t.Fatalf("no change of %s: %v", file, err)
		}
	}
	if more == "" {
		return dir
	}
	if err := os.WriteFile(filepath.Join(dir, "more.yaml"), []byte(more), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestMarksAcrossTheGateway: one Node has two Egresses at once. Each pod leaves by its own,
// in interleaved packets. Meanwhile the Node's probes reach a pod that allows no other
// client, and other packets of the Node do not.
func TestMarksAcrossTheGateway(t *testing.T) {
	w, err := newWorld(upWith(t, lab.Options{Manifests: exampleAnd(t, map[string]*strings.Replacer{
		"egress-trafficcontrol.yaml": strings.NewReplacer("egressNode: node-b", "egressNode: node-a")}, "")}))
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	var all sync.WaitGroup
	for pod, address := range map[string]string{
		"web-a": egressOfWeb.V4, "web-b": egressOfWeb.V4, "client-a": egressOfClients.V4, "client-b": egressOfClients.V4,
		"db-a": "192.168.77.102", // no Egress: the Node's own
	} {
		all.Go(func() {
			for range 20 {
				if g, err := w.greet(t.Context(), pod, "outside:80"); err != nil || g.source != address {
					t.Errorf("%s was seen as %q, error %v, want %s", pod, g.source, err, address)
				}
			}
		})
	}
	all.Go(func() {
		for range 20 {
			if g, err := w.greet(t.Context(), "node-a", "db-a:3306"); err != nil || g.source != w.sourceOf("node-a") {
				t.Errorf("a probe: db-a saw %q, error %v", g.source, err)
			}
		}
	})
	all.Go(func() {
		if err := w.wantSilence(t.Context(), attempt{"client-a", "db-a:3306"}); err != nil {
			t.Error(err)
		}
	})
	all.Wait()
}

// TestDSR: a client connects to a load balancer's address by one Node, and the endpoint's
// Node answers it directly. The endpoint sees the client's own address, on either Node, and
// the client sees the address that it connected to. There is no DSR over IPv6, as in
// Antrea, but the Service works.
func TestDSR(t *testing.T) {
	gate := strings.NewReplacer("features: {", "features: {LoadBalancerModeDSR: true, ")
	w, err := newWorld(upWith(t, lab.Options{Manifests: exampleAnd(t, map[string]*strings.Replacer{
		"node-a.yaml": gate, "node-b.yaml": gate,
		"services.yaml": strings.NewReplacer("{name: sample-loadbalancer,", "{name: sample-loadbalancer, annotations: {service.antrea.io/load-balancer-mode: dsr},"),
	}, "")}))
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	client := w.addresses["outside"].String()
	if err := w.served(t.Context(), "outside", loadBalancer.Of(w.v6), map[string]string{"web-a": client, "web-b": client}); err != nil {
		t.Error(err)
	}
	w6 := w.ipv6()
	if err := w6.served(t.Context(), "outside", loadBalancer.Of(w6.v6), w6.seenThrough()); err != nil {
		t.Error(err)
	}
}

// TestNodeSideComesBack: another program removes the Node's firewall, routes, addresses and
// sysctls. Soon all checks that need them pass again, and the agent has logged what it
// restored.
func TestNodeSideComesBack(t *testing.T) {
	t.Parallel()
	l := up(t)
	w, err := newWorld(l)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	for _, s := range []struct {
		take, back string
		needs      []check
	}{
		{"nft delete table inet antrail", "nftables table antrail", []check{{"NodePort", nodePort}, {"Egress", egress}, {"outside", outside}}},
		{"ip route del 10.10.1.0/24", "route to 10.10.1.0/24", []check{{"Nodes", connect("node-a", "client-b:5001")}}},
		{"ip route del 10.96.0.0/12", "route to 10.96.0.0/12", []check{{"LoadBalancer", balanced}}},
		{"ip address del 192.168.77.112/32 dev eth0", "address 192.168.77.112", []check{{"Egress", egress}}},
		{"ip address flush dev antrea-gw0", "address 10.10.0.1/24", []check{{"probes", connect("node-a", "db-a:3306")}}},
		{"echo 0 >/proc/sys/net/ipv4/ip_forward", "sysctl net/ipv4/ip_forward", []check{{"outside", outside}}},
	} {
		err := w.lab.In("node-a", func() error {
			if out, err := exec.Command("sh", "-c", s.take).CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
		if err != nil {
			t.Fatalf("%s: %v", s.take, err)
		}
		waitLine(t, l.Log("node-a"), `another program had changed the Node's side.*`+s.back)
		for _, c := range s.needs {
			if err := eventually(t, w, c); err != nil {
				t.Errorf("after %s: %s: %v", s.take, c.name, err)
			}
		}
	}
}

// eventually tries a check until it passes: connections that were broken leave
// neighbours and conntrack entries behind that go by themselves.
func eventually(t *testing.T, w *world, c check) (err error) {
	for end := time.Now().Add(time.Minute); ; time.Sleep(500 * time.Millisecond) {
		if _, err = c.run(t.Context(), w); err == nil || time.Now().After(end) {
			return err
		}
	}
}
