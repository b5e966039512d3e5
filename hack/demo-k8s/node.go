package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// node is a Node: a network namespace on the underlay, a mount namespace and a control group.
// containerd and the kubelet run in them.
type node struct {
	cluster *cluster
	name    string
	ip, ip6 string
	link    string // its end on the underlay's bridge
	mounts  int    // the process that holds the mount namespace
	before  string // the state of the Node before antrail
}

func newNode(c *cluster, i int) *node {
	return &node{
		cluster: c, name: fmt.Sprintf("antrail-demo-%d", i), link: fmt.Sprintf("node-%d", i),
		ip: fmt.Sprintf("192.168.77.%d", 100+i), ip6: fmt.Sprintf("fd00:77::%d", 100+i),
	}
}

func (n *node) file(name string) string { return n.cluster.file(filepath.Join(n.name, name)) }

// upNodes starts both Nodes at once and waits until the API has them. They become Ready with
// their network.
func (c *cluster) upNodes(ctx context.Context) error {
	for _, n := range c.nodes {
		if err := n.up(ctx); err != nil {
			return fmt.Errorf("%s: %w", n.name, err)
		}
	}
	for _, n := range c.nodes {
		err := wait(ctx, n.name, func() error {
			cidr, err := c.kubectl("get", "node", n.name, "-o", "jsonpath={.spec.podCIDR}")
			if err == nil && cidr == "" {
				err = errors.New("it has no podCIDR")
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (n *node) up(ctx context.Context) (err error) {
	for _, dir := range []string{"opt", "var", "etc", "work-opt", "work-var", "work-etc", "containerd", "kubelet", "pod-logs"} {
		if err := os.MkdirAll(n.file(dir), 0o755); err != nil {
			return err
		}
	}
	in := "ip -n " + n.name + " "
	err = errors.Join(commands(
		"ip netns add "+n.name,
		"ip -n "+controlNS+" link add "+n.link+" type veth peer name eth0 netns "+n.name,
		"ip -n "+controlNS+" link set "+n.link+" master "+underlay+" up",
		in+"link set lo up", in+"addr add "+n.ip+"/24 dev eth0", in+"link set eth0 up", in+"route add default via "+controlIP,
		in+"addr add "+n.ip6+"/64 dev eth0 nodad",
	), n.makeGroups(), n.writeConfigs())
	if err != nil {
		return err
	}
	if err := n.holdMounts(ctx); err != nil {
		return err
	}
	if err := wait(ctx, n.name, n.settle); err != nil {
		return err
	}
	if err := n.start("containerd", "containerd", "-c", n.file("containerd.toml")); err != nil {
		return err
	}
	if err := wait(ctx, "containerd", func() error { return n.ctr("version") }); err != nil {
		return err
	}
	for _, archive := range strings.Split(n.cluster.images, ",") {
		if err := n.ctr("images", "import", archive); err != nil {
			return err
		}
	}
	return n.start("kubelet", n.cluster.bin+"/kubelet", "--config", n.file("kubelet.yaml"), "--kubeconfig", n.cluster.kubeconfig(),
		"--hostname-override", n.name, "--node-ip", n.ip+","+n.ip6, "--root-dir", n.file("kubelet"), "--cert-dir", n.file("pki"))
}

// ownPlaces is a mount namespace in which the Node has directories of its own over the machine's,
// and mounts that its containers see. A kubelet sets sysctls of the whole machine and leaves them
// set; here they are files of the Node.
const ownPlaces = `set -e
mount --make-rshared /
mount -t tmpfs tmpfs /run
for d in opt var etc; do mount -t overlay overlay -o lowerdir=/$d,upperdir="$0/$d",workdir="$0/work-$d" /$d; done
mkdir -p /run/netns /opt/cni/bin /etc/cni/net.d
rm -rf /etc/cni/net.d/* /opt/cni/bin/*
cp "$1"/loopback "$1"/portmap "$1"/bandwidth /opt/cni/bin/
for s in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
	[ -e /proc/sys/$s ] || continue
	cat /proc/sys/$s >"$0/sysctl-${s##*/}"
	mount --bind "$0/sysctl-${s##*/}" /proc/sys/$s
done
touch "$0/mounted"
exec sleep infinity`

// holdMounts starts the process that holds the mount namespace.
func (n *node) holdMounts(ctx context.Context) error {
	p, err := n.cluster.start(n.name+"-mounts", n.group(), "nsenter", "--net="+netnsPath(n.name), "--",
		"unshare", "--mount", "--propagation", "private", "sh", "-c", ownPlaces, n.file(""), n.cluster.plugins)
	if err != nil {
		return err
	}
	n.mounts = p.Pid
	return wait(ctx, "mounts", func() error { _, err := os.Stat(n.file("mounted")); return err })
}

// inside is a command in the Node's namespaces.
func (n *node) inside(argv ...string) []string {
	return append([]string{"nsenter", "--net=" + netnsPath(n.name), fmt.Sprintf("--mount=/proc/%d/ns/mnt", n.mounts), "--"}, argv...)
}

func (n *node) start(name string, argv ...string) error {
	_, err := n.cluster.start(n.name+"-"+name, n.group(), n.inside(argv...)...)
	return err
}

func (n *node) ctr(args ...string) error {
	return command(n.inside(append([]string{"ctr", "-a", "/run/containerd.sock", "-n", "k8s.io"}, args...)...)...)
}

// writeConfigs writes the configurations of containerd and the kubelet.
func (n *node) writeConfigs() error {
	return errors.Join(
		os.WriteFile(n.file("containerd.toml"), fmt.Appendf(nil, containerdConfig, n.file("containerd")), 0o600),
		os.WriteFile(n.file("kubelet.yaml"), fmt.Appendf(nil, kubeletConfig, n.ip, n.name, n.file("pod-logs")), 0o600))
}

const containerdConfig = `version = 2
root = "%s"
state = "/run/containerd"
[grpc]
  address = "/run/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/library/antrail-demo-pause:latest"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
`

const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %s
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: /%s
podLogsDir: %s
failCgroupV1: false
failSwapOn: false
enforceNodeAllocatable: []
containerRuntimeEndpoint: unix:///run/containerd.sock
evictionHard: {memory.available: 1Mi, nodefs.available: 1%%, imagefs.available: 1%%}
imageGCHighThresholdPercent: 100
localStorageCapacityIsolation: false
makeIPTablesUtilChains: false
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
resolvConf: ""
syncFrequency: 10s
`

// groupRoots are the hierarchies of control groups: one for each controller of version 1, or the
// one of version 2.
func groupRoots() []string {
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		return []string{"/sys/fs/cgroup"}
	}
	all, _ := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
	for i, f := range all {
		all[i] = filepath.Dir(f)
	}
	return all
}

// group is the control group of the Node's own processes and their children.
func (n *node) group() string {
	for _, root := range groupRoots() {
		if filepath.Base(root) == "pids" || filepath.Base(root) == "cgroup" {
			return filepath.Join(root, n.name, "node")
		}
	}
	return ""
}

// makeGroups makes the Node's group in every hierarchy. A cpuset group takes processes only once
// it has processors.
func (n *node) makeGroups() error {
	for _, root := range groupRoots() {
		if err := os.MkdirAll(filepath.Join(root, n.name, "node"), 0o755); err != nil {
			return err
		}
		for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
			if value, err := os.ReadFile(filepath.Join(root, name)); err == nil && filepath.Base(root) == "cpuset" {
				if err := os.WriteFile(filepath.Join(root, n.name, name), value, 0o644); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// kill ends everything that runs in the Node's groups, and removes them.
func (n *node) kill() error {
	for range 100 {
		left := n.processes()
		if len(left) == 0 {
			break
		}
		for _, pid := range left {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if left := n.processes(); len(left) > 0 {
		return fmt.Errorf("%s: processes %v do not end", n.name, left)
	}
	var errs []error
	for _, root := range groupRoots() {
		for _, dir := range slices.Backward(below(filepath.Join(root, n.name))) {
			if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// processes are those in the Node's groups.
func (n *node) processes() (all []int) {
	for _, root := range groupRoots() {
		for _, dir := range below(filepath.Join(root, n.name)) {
			text, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
			for _, word := range strings.Fields(string(text)) {
				if pid, err := strconv.Atoi(word); err == nil && pid > 1 {
					all = append(all, pid)
				}
			}
		}
	}
	return all
}

// below are a directory and those in it, the outer first.
func below(dir string) (all []string) {
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			all = append(all, path)
		}
		return nil
	})
	return all
}
