package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent"
	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/cni"
	"github.com/antrail/antrail/host/preflight"
	"github.com/antrail/antrail/internal/confine"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/switchd"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"golang.org/x/sys/unix"
)

// asAgent makes this program an agent of a configuration file. Under the plugin's
// name it is the plugin.
const asAgent = "ANTRAIL_TEST_AGENT"

func TestMain(m *testing.M) {
	switchd.Enter()
	if filepath.Base(os.Args[0]) == cni.Type {
		main()
		return
	}
	if config := os.Getenv(asAgent); config != "" {
		runAgent(config)
		return
	}
	code := m.Run()
	os.RemoveAll(tools) // "" is none
	os.Exit(code)
}

func runAgent(file string) {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer stop()
	c, err := config.Load(file)
	if err == nil {
		_, err = confine.Keep(preflight.Kept(true), switchd.Program())
	}
	if err == nil {
		err = agent.Run(ctx, c, slog.New(slog.NewTextHandler(os.Stderr, nil)), false)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// world is a Node with an agent on manifests, the plugin, and cnitool, which calls
// it as a runtime does.
type world struct {
	*testing.T
	node      *nstest.Namespace
	dir       string
	manifests string
	agent     *exec.Cmd
	log       log
}

// log is the path of what an agent writes, to be read meanwhile. A pipe would end with the
// switch, which outlives the agent.
type log string

// String is all that was written so far.
func (l log) String() string {
	text, err := os.ReadFile(string(l))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

const clusterManifests = `
apiVersion: v1
kind: Node
metadata: {name: node-a}
spec: {podCIDR: 10.10.0.0/24, podCIDRs: [10.10.0.0/24, "fd00:10:10::/64"]}
status: {addresses: [{type: InternalIP, address: 192.168.77.102}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: default}
---
apiVersion: antrail.io/v1alpha1
kind: NodeConfig
metadata: {name: node-a}
spec:
  gateway: {name: antrea-gw0, ofPort: 2, mac: "ba:5e:d1:55:aa:c0", ips: [10.10.0.1, "fd00:10:10::1"]}
  tunnel: {name: antrea-tun0, ofPort: 1, type: geneve}
  transportIPs: [192.168.77.102]
  serviceCIDRs: [10.96.0.0/12]
  proxyAll: true
`

const agentConfig = `nodeName: node-a
socket: %s
manifests: %s
gateway: {mac: "ba:5e:d1:55:aa:c0", addresses: [10.10.0.1/24, "fd00:10:10::1/64"]}
tunnel: {localAddress: 192.168.77.102}
podCIDRs: [10.10.0.0/24, "fd00:10:10::/64"]
metrics: {listen: false}
`

// newWorld makes everything but the agent. pods are known from the start.
func newWorld(t *testing.T, pods ...string) *world {
	t.Helper()
	w := &world{T: t, node: nstest.New(t), dir: t.TempDir()}
	w.node.AddAddress(t, "lo", "192.168.77.102/32")
	w.node.Sysctl(t, "net/ipv6/conf/all/disable_ipv6", "0")
	w.node.Sysctl(t, "net/ipv6/conf/default/disable_ipv6", "0")
	w.manifests = filepath.Join(w.dir, "manifests")
	w.write("manifests/cluster.yaml", clusterManifests)
	for _, pod := range pods {
		w.addPod(pod, "uid-"+pod)
	}
	w.write("agent.yaml", fmt.Sprintf(agentConfig, w.socket(), w.manifests))
	w.write("bin/"+cni.Type, "")
	os.Remove(w.path("bin/" + cni.Type))
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, w.path("bin/"+cni.Type))
	}
	if err != nil {
		t.Fatal(err)
	}
	w.setConf("")
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }
func (w *world) socket() string          { return w.path("run/agent.sock") }

func (w *world) write(name, text string) {
	w.Helper()
	if err := os.MkdirAll(filepath.Dir(w.path(name)), 0o755); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(w.path(name)+".new", []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
	if err := os.Rename(w.path(name)+".new", w.path(name)); err != nil {
		w.Fatal(err)
	}
}

// addPod makes a Pod known.
func (w *world) addPod(name, uid string) {
	w.Helper()
	w.write("manifests/pod-"+name+".yaml", fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: default, uid: %s, labels: {app: %s}}
spec: {nodeName: node-a, containers: [{name: c, image: x}]}
status: {phase: Pending}
`, name, uid, name))
}

// setConf writes the conflist: the plugin with more keys, and plugins after it.
func (w *world) setConf(keys string, chained ...string) {
	w.Helper()
	plugins := append([]string{fmt.Sprintf(`{"type": %q, "socket": %q%s}`, cni.Type, w.socket(), keys)}, chained...)
	w.write("net.d/10-antrail.conflist", fmt.Sprintf(`{"cniVersion": "1.1.0", "name": "antrail", "plugins": [%s]}`, strings.Join(plugins, ",\n")))
}

// start runs the agent until it is ready.
func (w *world) start() {
	w.Helper()
	to, err := os.Create(filepath.Join(w.TempDir(), "agent.log"))
	if err != nil {
		w.Fatal(err)
	}
	defer to.Close()
	w.log = log(to.Name())
	w.agent = w.node.Command(os.Args[0])
	w.agent.Env = append(os.Environ(), asAgent+"="+w.path("agent.yaml"))
	w.agent.Stderr = to
	if err := w.agent.Start(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		w.kill()
		if err := agent.EndSwitch(context.Background(), w.socket()); err != nil {
			w.Error(err)
		}
	})
	client := api.NewClient(w.socket())
	w.eventually("the agent is ready", func() error { return client.Ready(w.Context()) })
}

// kill ends the agent without a word to it.
func (w *world) kill() {
	w.agent.Process.Kill()
	w.agent.Wait()
	if text := w.log.String(); strings.Contains(text, "DATA RACE") || strings.Contains(text, "panic:") {
		w.Errorf("the agent's log:\n%s", text)
	}
}

// eventually polls a condition until it holds. It fails after a minute.
func (w *world) eventually(what string, ask func() error) {
	w.Helper()
	err := ask()
	for end := time.Now().Add(time.Minute); err != nil; err = ask() {
		if time.Now().After(end) || w.Context().Err() != nil {
			w.Fatalf("%s: %v\nthe agent's log:\n%s", what, err, w.log.String())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// sandbox is a Pod's network namespace.
type sandbox struct {
	*nstest.Namespace
	pod    string
	ifname string
	caps   string // capabilities' arguments, as JSON
}

func (w *world) sandbox(pod string) *sandbox {
	ns := nstest.New(w.T)
	ns.Sysctl(w.T, "net/ipv6/conf/lo/disable_ipv6", "0")
	return &sandbox{Namespace: ns, pod: pod, ifname: "eth0"}
}

// cnitool calls the plugins of the conflist for a sandbox.
func (w *world) cnitool(verb string, s *sandbox) ([]byte, error) {
	c := w.node.Command(tool(w.T, "cnitool"), verb, "antrail", s.Path())
	c.Env = append(os.Environ(), "CNI_PATH="+w.path("bin")+":"+filepath.Dir(tool(w.T, "cnitool")), "NETCONFPATH="+w.path("net.d"),
		"CNI_IFNAME="+s.ifname, "CAP_ARGS="+s.caps,
		"CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME="+s.pod+";K8S_POD_UID=uid-"+s.pod)
	out, err := c.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("cnitool %s: %w: %s", verb, err, out)
	}
	return out, err
}

// plugin calls the plugin itself, and returns what it prints.
func (w *world) plugin(s *sandbox, verb, args, conf string) []byte {
	c := w.node.Command(w.path("bin/" + cni.Type))
	c.Env = append(os.Environ(), "CNI_COMMAND="+verb, "CNI_CONTAINERID=box", "CNI_NETNS="+s.Path(), "CNI_IFNAME=eth0", "CNI_PATH="+w.path("bin"), "CNI_ARGS="+args)
	c.Stdin = strings.NewReader(conf)
	out, _ := c.Output()
	return out
}

// addresses are what a sandbox's interface has.
func (s *sandbox) addresses() (all []string) {
	link, err := s.Links().LinkByName(s.ifname)
	if err != nil {
		return nil
	}
	addrs, err := s.Links().AddrList(link, 0)
	for _, a := range addrs {
		if err == nil && a.IP.IsGlobalUnicast() {
			all = append(all, a.IP.String())
		}
	}
	return all
}

// must is cnitool that has to succeed.
func (w *world) must(verb string, s *sandbox) []byte {
	w.Helper()
	out, err := w.cnitool(verb, s)
	if err != nil {
		w.Fatalf("%v\nthe agent's log:\n%s", err, w.log)
	}
	return out
}

// addSandbox gives a sandbox its interface.
func (w *world) addSandbox(s *sandbox) *types100.Result {
	w.Helper()
	r := &types100.Result{}
	if out := w.must("add", s); json.Unmarshal(out, r) != nil || len(r.IPs) == 0 {
		w.Fatalf("add: %s", out)
	}
	return r
}

// ping sends one echo request.
func (s *sandbox) ping(to string) error {
	if out, err := s.Command("ping", "-c1", "-W2", to).CombinedOutput(); err != nil {
		return fmt.Errorf("ping %s: %w: %s", to, err, out)
	}
	return nil
}

// tools is where this run's programs of hack/cni are.
var tools string

// tool builds the programs of hack/cni, once, and is the path of one of them.
func tool(t *testing.T, name string) string {
	t.Helper()
	if tools == "" {
		dir, err := os.MkdirTemp("", "antrail-cni-tools-")
		if err != nil {
			t.Fatal(err)
		}
		build := exec.Command("go", "build", "-o", dir+"/", "tool")
		build.Dir, build.Env = "../../hack/cni", append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build the tools of hack/cni: %v\n%s", err, out)
		}
		tools = dir
	}
	return filepath.Join(tools, name)
}
