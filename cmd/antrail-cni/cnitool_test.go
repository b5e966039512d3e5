package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/antrail/antrail/agent"
	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/cni"
	"github.com/antrail/antrail/internal/testsize"
	"github.com/containernetworking/cni/pkg/types"
)

// TestCNITool: a runtime's whole sequence by cnitool, through a real agent: two Pods
// get interfaces of both families and reach each other and the Node; CHECK,
// STATUS; ADD and DEL twice; nothing is left.
func TestCNITool(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.start()
	a, b := w.sandbox("a"), w.sandbox("b")
	w.must("status", a)
	ra, rb := w.addSandbox(a), w.addSandbox(b)
	for _, ip := range rb.IPs {
		if err := a.ping(ip.Address.IP.String()); err != nil {
			t.Errorf("%v\n%s", err, w.log)
		}
	}
	if len(ra.IPs) != 2 || len(ra.Routes) != 2 || len(ra.Interfaces) != 2 || ra.Interfaces[1].Mtu != 1450 {
		t.Errorf("result %+v", ra)
	}
	for _, ip := range ra.IPs {
		if err := a.ping(ip.Gateway.String()); err != nil {
			t.Error(err)
		}
	}
	if again := w.addSandbox(a); fmt.Sprint(again.IPs[0].Address) != fmt.Sprint(ra.IPs[0].Address) {
		t.Errorf("ADD twice: %v, then %v", ra.IPs[0], again.IPs[0])
	}
	for _, s := range []*sandbox{a, b} {
		w.must("check", s)
		w.must("del", s)
		w.must("del", s)
	}
	w.wantNothing()
}

// TestDriverOfPods: the configuration says which driver all pods' ports have, and an
// agent that is started with another one moves them.
func TestDriverOfPods(t *testing.T) {
	w := newWorld(t, "a", "b")
	before, err := os.ReadFile(w.path("agent.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var boxes []*sandbox
	for _, driver := range []string{config.DriverAFXDP, config.DriverAFPacket} {
		w.write("agent.yaml", string(before)+"podDriver: "+driver+"\n")
		w.start()
		if boxes == nil {
			boxes = []*sandbox{w.sandbox("a"), w.sandbox("b")}
			w.addSandbox(boxes[0])
			w.addSandbox(boxes[1])
		}
		w.eventually("both ports are on "+driver, func() error { return w.wantDriver(driver, 2) })
		w.eventually("b is reached", func() error { return boxes[0].ping(boxes[1].addresses()[0]) })
		w.kill()
	}
}

// wantDriver says whether so many pods' ports have a driver.
func (w *world) wantDriver(driver string, n int) error {
	var all []api.PortRecord
	if err := api.NewClient(w.socket()).JSON(w.Context(), "/ports", url.Values{}, &all); err != nil {
		return err
	}
	for _, p := range all {
		if p.No > 2 && p.Driver == driver {
			n--
		}
	}
	if n != 0 {
		return fmt.Errorf("%d are not: %+v", n, all)
	}
	return nil
}

// TestPolicyBeforeTraffic: a Pod with a policy that lets nobody in is sent packets
// from before its ADD on; none is answered, on none of its interfaces. Without the
// policy they are.
func TestPolicyBeforeTraffic(t *testing.T) {
	w := newWorld(t, "a", "b")
	const policy = "manifests/policy.yaml"
	w.write(policy, `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: shut, namespace: default}
spec: {podSelector: {matchLabels: {app: b}}, policyTypes: [Ingress]}
`)
	w.start()
	a, b := w.sandbox("a"), w.sandbox("b")
	w.addSandbox(a)
	b2 := *b
	b2.ifname = "net1"
	const first, second = "10.10.0.3", "10.10.0.4" // b's will be these
	pings := map[string]*exec.Cmd{}
	out := map[string]*strings.Builder{}
	for _, to := range []string{first, second} {
		out[to] = &strings.Builder{}
		pings[to] = a.Command("ping", "-i0.002", to)
		pings[to].Stdout = out[to]
		if err := pings[to].Start(); err != nil {
			t.Fatal(err)
		}
	}
	rb, rb2 := w.addSandbox(b), w.addSandbox(&b2)
	for to, p := range pings {
		p.Process.Signal(os.Interrupt)
		p.Wait()
		if !strings.Contains(out[to].String(), " 0 received") {
			t.Errorf("%s was reached: %s", to, out[to])
		}
	}
	if rb.IPs[0].Address.IP.String() != first || rb2.IPs[0].Address.IP.String() != second {
		t.Fatalf("b has %v and %v", rb.IPs[0], rb2.IPs[0])
	}
	if pods, err := api.NewClient(w.socket()).Get(w.Context(), "/pods", nil); err != nil || !strings.Contains(string(pods), " b@net1 ") {
		t.Errorf("%v\n%s", err, pods)
	}
	if err := os.Remove(w.path(policy)); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{first, second} {
		w.eventually("b is reached at "+to, func() error { return a.ping(to) })
	}
	w.must("check", &b2)
	for _, s := range []*sandbox{a, &b2, b} {
		w.must("del", s)
	}
	w.wantNothing()
}

// TestWaitsForItsPod: ADD waits until its Pod is known, and not one of its name from
// before. Pods in the Node's network or of another Node are refused.
func TestWaitsForItsPod(t *testing.T) {
	w := newWorld(t)
	w.addPod("a", "uid-of-before")
	w.write("manifests/others.yaml", `
apiVersion: v1
kind: Pod
metadata: {name: own, namespace: default}
spec: {nodeName: node-a, hostNetwork: true, containers: [{name: c, image: x}]}
---
apiVersion: v1
kind: Pod
metadata: {name: far, namespace: default}
spec: {nodeName: node-b, containers: [{name: c, image: x}]}
`)
	w.start()
	a, b := w.sandbox("a"), w.sandbox("b")
	added := make(chan error, 2)
	for _, s := range []*sandbox{a, b} {
		go func() { _, err := w.cnitool("add", s); added <- err }()
	}
	w.wantCode("ADD", w.sandbox("own"), cni.CodePodUnsuited)
	w.wantCode("ADD", w.sandbox("far"), cni.CodePodUnsuited)
	if a.addresses() != nil || b.addresses() != nil {
		t.Error("interfaces of Pods that are not known")
	}
	w.addPod("a", "uid-a")
	w.addPod("b", "uid-b")
	for range 2 {
		if err := <-added; err != nil {
			t.Fatalf("%v\n%s", err, w.log)
		}
	}
	if err := a.ping(b.addresses()[0]); err != nil {
		t.Error(err)
	}
	w.must("del", a)
	w.must("del", b)
	w.wantNothing()
}

// TestAgentRestarts: after a kill Pods' ports are there again with their numbers. A
// Pod that was deleted meanwhile is cleared away; nobody gets its address before.
func TestAgentRestarts(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	w.start()
	a, b, c := w.sandbox("a"), w.sandbox("b"), w.sandbox("c")
	w.addSandbox(a)
	rb, rc := w.addSandbox(b), w.addSandbox(c)
	before := w.ports()
	w.kill()
	w.must("del", c)
	w.wantCode("ADD", w.sandbox("c"), types.ErrTryAgainLater)
	w.wantCode("STATUS", a, types.ErrLimitedConnectivity)
	w.wantCode("CHECK", a, types.ErrTryAgainLater)
	w.start()
	w.eventually("b is reached", func() error { return a.ping(rb.IPs[0].Address.IP.String()) })
	w.must("check", a)
	link := rc.Interfaces[0].Name
	now := w.ports()
	if before[link] == 0 || now[link] != 0 || len(now) != len(before)-1 {
		t.Errorf("ports were %v, are %v; %s was removed", before, now, link)
	}
	for name, no := range now {
		if before[name] != no {
			t.Errorf("port %s was %d, is %d", name, before[name], no)
		}
	}
	w.must("del", a)
	w.must("del", b)
	w.wantNothing()
}

// TestStatusWithoutObjects: an agent that forwards by the entries of the one before,
// while its objects cannot be read, can add no Pod, and says so. It can remove one.
func TestStatusWithoutObjects(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.start()
	a, b := w.sandbox("a"), w.sandbox("b")
	w.addSandbox(a)
	w.addSandbox(b)
	w.agent.Process.Signal(syscall.SIGTERM)
	w.agent.Wait()
	if err := os.Rename(w.manifests, w.manifests+".off"); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.wantCode("STATUS", a, types.ErrPluginNotAvailable)
	w.wantCode("CHECK", a, types.ErrTryAgainLater)
	w.must("del", b)
	if len(w.ports()) == 0 {
		t.Error("a's port is gone")
	}
	if err := os.Rename(w.manifests+".off", w.manifests); err != nil {
		t.Fatal(err)
	}
	w.eventually("STATUS", func() error { _, err := w.cnitool("status", a); return err })
	w.must("check", a)
	w.must("del", a)
	w.wantNothing()
}

// TestDisorderWithKills: calls in random order, and agents killed at random moments
// in the midst of them.
func TestDisorderWithKills(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 2))
	w := newWorld(t, "a", "b", "c", "d")
	w.start()
	var boxes []*sandbox
	for _, pod := range []string{"a", "b", "c", "d"} {
		s := w.sandbox(pod)
		further := *s
		further.ifname = "net1"
		boxes = append(boxes, s, &further)
	}
	for range testsize.Rounds(10) {
		ended, order := make(chan struct{}), random.Perm(3 * len(boxes))[:8]
		go func() {
			defer close(ended)
			for _, i := range order {
				w.cnitool([]string{"add", "add", "del"}[i%3], boxes[i/3]) // while the agent is away it fails
			}
		}()
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
		w.kill()
		<-ended
		w.start()
		held := map[string]string{}
		for _, s := range boxes {
			for _, ip := range s.addresses() {
				if held[ip] != "" {
					t.Errorf("%s is on %s/%s and %s", ip, s.pod, s.ifname, held[ip])
				}
				held[ip] = s.pod + "/" + s.ifname
			}
		}
	}
	for _, s := range boxes {
		w.addSandbox(s)
		w.must("check", s)
	}
	for _, s := range boxes {
		w.must("del", s)
	}
	w.wantNothing()
}

// TestSandboxThatVanishes: one that ends without DEL, as when a runtime lost what it
// knew, frees its port and addresses while the agent runs; a late DEL finds nothing.
func TestSandboxThatVanishes(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.start()
	a, b := w.sandbox("a"), w.sandbox("b")
	link := w.addSandbox(a).Interfaces[0].Name
	w.addSandbox(b)
	a.Remove()
	w.eventually("it is taken back", func() error {
		if !strings.Contains(w.log.String(), "its sandbox is gone, and DEL never came") {
			return errors.New("the log does not say so")
		}
		return nil
	})
	if text, err := os.ReadFile(w.path("run/cni.record")); err != nil || strings.Contains(string(text), link) {
		t.Errorf("record: %v, %s", err, text)
	}
	w.must("del", a)
	w.must("check", b)
	w.must("del", b)
	w.wantNothing()
}

// TestUninstall takes the links of pods away that an agent left which was killed, and
// its record.
func TestUninstall(t *testing.T) {
	w := newWorld(t, "a")
	w.start()
	a := w.sandbox("a")
	link := w.addSandbox(a).Interfaces[0].Name
	w.kill()
	var told []string
	w.node.Do(t, func() {
		if err := agent.Uninstall(w.socket(), func(what string) { told = append(told, what) }); err != nil {
			t.Error(err)
		}
	})
	if text := strings.Join(told, "\n"); !strings.Contains(text, "removed link "+link+" of pod default/a\n") || !strings.Contains(text, "removed "+w.path("run/cni.record")) {
		t.Errorf("told:\n%s", text)
	}
	if _, err := os.Stat(w.path("run")); !os.IsNotExist(err) || a.addresses() != nil {
		t.Errorf("%v; the sandbox has %v", err, a.addresses())
	}
}

// TestByHand: what a runtime gives wrongly is refused with the specification's
// codes; VERSION needs no agent.
func TestByHand(t *testing.T) {
	w := newWorld(t, "a")
	w.start()
	a := w.sandbox("a")
	const conf = `{"cniVersion":"1.1.0","name":"antrail","type":"antrail-cni","socket":"%s"%s}`
	const pod = "K8S_POD_NAMESPACE=default;K8S_POD_NAME=a"
	for what, c := range map[string]struct {
		verb, args, conf string
		code             uint
	}{
		"no Pod":         {"ADD", "IgnoreUnknown=1", "", types.ErrInvalidEnvironmentVariables},
		"unknown args":   {"ADD", "NONSENSE=1;" + pod, "", types.ErrInvalidEnvironmentVariables},
		"chained after":  {"ADD", pod, `,"prevResult":{"cniVersion":"1.1.0","ips":[]}`, types.ErrInvalidNetworkConfig},
		"no prevResult":  {"CHECK", pod, "", types.ErrInvalidNetworkConfig},
		"no JSON":        {"ADD", pod, `,]`, types.ErrDecodingFailure},
		"no IPAM plugin": {"ADD", pod, `,"ipam":{"type":"nobody"}`, types.ErrInvalidNetworkConfig},
		"GC":             {"GC", pod, `,"cni.dev/valid-attachments":[]`, 0},
		"STATUS":         {"STATUS", pod, "", 0},
		"VERSION":        {"VERSION", "", "", 0},
	} {
		out := w.plugin(a, c.verb, c.args, fmt.Sprintf(conf, w.socket(), c.conf))
		said := &types.Error{}
		if c.code == 0 && strings.Contains(string(out), `"code"`) {
			t.Errorf("%s: %s", what, out)
		}
		if c.code != 0 && (json.Unmarshal(out, said) != nil || said.Code != c.code) {
			t.Errorf("%s: %s, want code %d", what, out, c.code)
		}
	}
	w.wantNothing()
}

// ports are the switch's pod ports: link and number.
func (w *world) ports() map[string]uint32 {
	w.Helper()
	var all []api.PortRecord
	if err := api.NewClient(w.socket()).JSON(w.Context(), "/ports", url.Values{}, &all); err != nil {
		w.Fatal(err)
	}
	numbers := map[string]uint32{}
	for _, p := range all {
		if p.No > 2 {
			numbers[p.Link] = p.No
		}
	}
	return numbers
}

// wantCode checks the code of an error, which cnitool does not print.
func (w *world) wantCode(verb string, s *sandbox, code uint) {
	w.Helper()
	conf := fmt.Sprintf(`{"cniVersion":"1.1.0","name":"antrail","type":"antrail-cni","socket":%q`, w.socket())
	if verb == "CHECK" {
		conf += `,"prevResult":{"cniVersion":"1.1.0","ips":[]}`
	}
	out := w.plugin(s, verb, "K8S_POD_NAMESPACE=default;K8S_POD_NAME="+s.pod, conf+"}")
	said := &types.Error{}
	if json.Unmarshal(out, said) != nil || said.Code != code {
		w.Errorf("%s: %s, want code %d", verb, out, code)
	}
}

// wantNothing checks that neither the Node nor the record have anything of a Pod.
func (w *world) wantNothing() {
	w.Helper()
	links, err := w.node.Links().LinkList()
	if err != nil {
		w.Fatal(err)
	}
	for _, l := range links {
		if l.Type() == "veth" {
			w.Errorf("link %s is left", l.Attrs().Name)
		}
	}
	text, err := os.ReadFile(w.path("run/cni.record"))
	if err == nil && !strings.Contains(string(text), `"attachments": []`) || err != nil && !os.IsNotExist(err) {
		w.Errorf("record: %v, %s", err, text)
	}
	w.eventually("no port is left", func() error {
		if all := w.ports(); len(all) > 0 {
			return fmt.Errorf("%v", all)
		}
		return nil
	})
	flows, err := api.NewClient(w.socket()).Get(w.Context(), "/flows", nil)
	for _, address := range []string{"10.10.0.2,", "10.10.0.3,", "10.10.0.4,"} {
		if err != nil || strings.Contains(string(flows), address) {
			w.Errorf("entries: %v\n%s", err, flows)
		}
	}
}
