package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// check is one line of the table.
type check struct {
	name string
	run  func(*cluster) (seen string, err error)
}

var checks = []check{
	{"pods reach pods of their Node and of the other", (*cluster).podToPod},
	{"DNS: ClusterIP, headless, ExternalName", (*cluster).names},
	{"ClusterIP, TCP and UDP, both endpoints", (*cluster).clusterIP},
	{"session affinity keeps one endpoint", (*cluster).affinity},
	{"NodePort from outside, pods, Nodes and 127.0.0.1", (*cluster).nodePort},
	{"externalTrafficPolicy Local keeps the client", (*cluster).local},
	{"LoadBalancer and external IP", (*cluster).balanced},
	{"IPv6: pods, ClusterIP, NodePort from outside", (*cluster).sixth},
	{"pods reach the world, masqueraded", (*cluster).world},
	{"NetworkPolicy: default-deny lets probes in, nobody else", (*cluster).quiet},
	{"NetworkPolicy: whom it names gets in, until it goes", (*cluster).allowed},
	{"Antrea: a Reject before all NetworkPolicies, until it goes", (*cluster).rejected},
	{"Antrea: pods of both Nodes leave by their Egress' address", (*cluster).egress},
	{"deleted pods come back, their Service goes on", (*cluster).podsComeBack},
	{"agents are replaced by a rolling update, connections go on", (*cluster).rollingUpdate},
	{"deleted agents come back, pods stay reachable", (*cluster).agentsComeBack},
	{"antrail check --live on every Node", (*cluster).live},
	{"the process that forwards packets has no privilege", (*cluster).confined},
}

// run runs all checks. A line begins when its check does.
func (c *cluster) check(ctx context.Context) error {
	var failed []string
	for i, k := range checks {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		fmt.Printf("%2d of %d  %-58s  ", i+1, len(checks), k.name)
		at := time.Now()
		seen, err := k.run(c)
		verdict := "ok"
		if err != nil {
			verdict, seen = "FAIL", err.Error()
			failed = append(failed, k.name)
		}
		fmt.Printf("%-4s %5.1f s  %s\n", verdict, time.Since(at).Seconds(), seen)
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d of %d checks failed: %s", len(failed), len(checks), strings.Join(failed, "; "))
	}
	fmt.Printf("%d of %d checks passed\n", len(checks), len(checks))
	return nil
}

// ask is one way to send a request. It returns a server's greeting, or an error.
type ask func() (string, error)

// answered sends enough requests to reach both web pods, one on each Node, and counts the answers
// of each. If source is set, each pod must have seen that address.
func answered(a ask, source string) (map[string]int, error) {
	got := map[string]int{}
	for range 16 { // misses one of two pods once in 32,000 times
		said, err := a()
		if err != nil {
			return got, err
		}
		name, client, _ := strings.Cut(said, " ")
		if source != "" && client != source {
			return got, fmt.Errorf("%s saw %s, want %s", name, client, source)
		}
		got[name]++
	}
	return got, nil
}

// both is an error unless two pods answered.
func both(what string, a ask) error {
	got, err := answered(a, "")
	if err == nil && len(got) != 2 {
		err = fmt.Errorf("answered by %v", got)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func (c *cluster) podToPod() (string, error) {
	var seen []string
	for _, to := range c.nodes {
		_, ip, err := c.pod("web", to)
		if err != nil {
			return "", err
		}
		for _, from := range c.nodes {
			_, client, err := c.pod("client", from)
			if err != nil {
				return "", err
			}
			got, err := c.from(from, "get", "http://"+ip+":8080/")
			if err != nil || !strings.HasSuffix(got, " "+client) {
				return "", fmt.Errorf("from %s on %s to %s: %q, %v", client, from.name, ip, got, err)
			}
		}
		seen = append(seen, ip)
	}
	return strings.Join(seen, ", ") + " from two clients each", nil
}

func (c *cluster) names() (string, error) {
	for name, want := range map[string]string{"web": "web.default.svc.cluster.local. 10.96.0.80", "elsewhere": "web.default.svc.cluster.local. 10.96.0.80"} {
		got, err := c.from(c.nodes[0], "resolve", name+".default.svc.cluster.local")
		if err != nil || got != want {
			return "", fmt.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	got, err := c.from(c.nodes[1], "resolve", "web-headless.default.svc.cluster.local")
	if err != nil {
		return "", err
	}
	for _, n := range c.nodes {
		if _, ip, err := c.pod("web", n); err != nil || !strings.Contains(got, " "+ip) {
			return "", fmt.Errorf("headless: %q without %s, %v", got, ip, err)
		}
	}
	return got, nil
}

func (c *cluster) clusterIP() (string, error) {
	for _, n := range c.nodes {
		for _, args := range [][]string{{"get", "http://web/"}, {"udp", "web:81"}} {
			if err := both(strings.Join(args, " ")+" on "+n.name, func() (string, error) { return c.from(n, args...) }); err != nil {
				return "", err
			}
		}
	}
	return "by name, from both Nodes", nil
}

func (c *cluster) affinity() (string, error) {
	got, err := answered(func() (string, error) { return c.from(c.nodes[0], "get", "http://web-sticky/") }, "")
	if err != nil || len(got) != 1 {
		return "", fmt.Errorf("answered by %v, %v", got, err)
	}
	return fmt.Sprint(got), nil
}

func (c *cluster) nodePort() (string, error) {
	const port = ":30080/"
	for _, n := range c.nodes {
		at := "http://" + n.ip + port
		for what, a := range map[string]ask{
			"outside":             func() (string, error) { return c.outside("get", at) },
			"the Node itself":     func() (string, error) { return c.onNode(n, "get", at) },
			"the Node, 127.0.0.1": func() (string, error) { return c.onNode(n, "get", "http://127.0.0.1"+port) },
			"a pod":               func() (string, error) { return c.from(c.nodes[0], "get", at) },
		} {
			if err := both(at+" from "+what, a); err != nil {
				return "", err
			}
		}
	}
	return "port 30080 of both Nodes", nil
}

func (c *cluster) local() (string, error) {
	for _, n := range c.nodes {
		name, _, err := c.pod("web", n)
		if err != nil {
			return "", err
		}
		got, err := answered(func() (string, error) { return c.outside("get", "http://"+n.ip+":30081/") }, controlIP)
		if err != nil || got[name] != 16 {
			return "", fmt.Errorf("%s: answered by %v, want %s; %v", n.name, got, name, err)
		}
	}
	return "each Node's own pod, which sees " + controlIP, nil
}

func (c *cluster) balanced() (string, error) {
	for _, address := range []string{"192.168.77.150", "192.168.77.200"} {
		at := "http://" + address + "/"
		for what, a := range map[string]ask{
			"outside":  func() (string, error) { return c.outside("get", at) },
			"a pod":    func() (string, error) { return c.from(c.nodes[1], "get", at) },
			"the Node": func() (string, error) { return c.onNode(c.nodes[0], "get", at) },
		} {
			if err := both(at+" from "+what, a); err != nil {
				return "", err
			}
		}
	}
	return "192.168.77.150 and .200, from outside, pod and Node", nil
}

// sixth sends requests to the pods' IPv6 addresses.
func (c *cluster) sixth() (string, error) {
	said, err := c.kubectl("get", "pod", "-l", "app=web", "-o", "jsonpath={.items[*].status.podIPs[1].ip}")
	addresses := strings.Fields(said)
	if err != nil || len(addresses) != 2 {
		return "", fmt.Errorf("addresses %q, %v", said, err)
	}
	for _, n := range c.nodes {
		for _, ip := range addresses {
			if _, err := c.from(n, "get", "http://["+ip+"]:8080/"); err != nil {
				return "", err
			}
		}
		for at, a := range map[string]ask{
			"a pod":   func() (string, error) { return c.from(n, "get", "http://[fd00:10:96::80]/") },
			"outside": func() (string, error) { return c.outside("get", "http://["+n.ip6+"]:30082/") },
		} {
			if err := both("the Service from "+at, a); err != nil {
				return "", err
			}
		}
	}
	return said, nil
}

// world sends requests to the API server, which is outside the cluster, directly and by its
// Service.
func (c *cluster) world() (string, error) {
	for _, n := range c.nodes {
		for _, at := range []string{"http://" + controlIP + ":" + apiPort, "http://kubernetes:443"} {
			got, err := c.from(n, "get", at)
			if err != nil || !strings.Contains(got, "HTTP request to an HTTPS server") {
				return "", fmt.Errorf("%s on %s: %q, %v", at, n.name, got, err)
			}
		}
	}
	return "the API server by its address and its Service", nil
}

// quiet checks pods that only their kubelets may reach. The kubelets probe them by HTTP and TCP.
func (c *cluster) quiet() (string, error) {
	if _, err := c.kubectl("wait", "--for=condition=Ready", "pod", "-l", "app=quiet", "--timeout=60s"); err != nil {
		return "", err
	}
	for _, n := range c.nodes {
		_, ip, err := c.pod("quiet", n)
		if err != nil {
			return "", err
		}
		for _, from := range c.nodes {
			if got, err := c.from(from, "get", "http://"+ip+":8080/"); err == nil {
				return "", fmt.Errorf("a pod of %s reached %s: %q", from.name, ip, got)
			}
		}
	}
	restarts, err := c.kubectl("get", "pod", "-l", "app=quiet", "-o", "jsonpath={.items[*].status.containerStatuses[*].restartCount}")
	if err != nil || restarts != "0 0" {
		return "", fmt.Errorf("restarts %q, %v", restarts, err)
	}
	return "two pods Ready, no restart, four clients kept out", nil
}

const allowClient = `{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "allow-client"},
"spec": {"podSelector": {"matchLabels": {"app": "quiet"}}, "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "client"}}}], "ports": [{"port": 8080}]}]}}`

func (c *cluster) allowed() (string, error) {
	_, ip, err := c.pod("quiet", c.nodes[1])
	if err != nil {
		return "", err
	}
	if _, err := c.kubectlWith(allowClient, "apply", "-f", "-"); err != nil {
		return "", err
	}
	get := func() error { _, err := c.from(c.nodes[0], "get", "http://"+ip+":8080/"); return err }
	if err := wait(context.Background(), "with the policy", get); err != nil {
		return "", err
	}
	if _, err := c.kubectl("delete", "networkpolicy", "allow-client"); err != nil {
		return "", err
	}
	err = wait(context.Background(), "without the policy", func() error {
		if get() == nil {
			return errors.New("the client still gets in")
		}
		return nil
	})
	return "a client on the other Node", err
}

func (c *cluster) podsComeBack() (string, error) {
	before, err := c.kubectl("get", "pod", "-l", "app in (web,client)", "-o", "jsonpath={.items[*].metadata.name}")
	if err != nil {
		return "", err
	}
	if _, err := c.kubectl(append([]string{"delete", "pod", "--wait=true"}, strings.Fields(before)...)...); err != nil {
		return "", err
	}
	if err := c.rolledOut(); err != nil {
		return "", err
	}
	if err := wait(context.Background(), "the Service", func() error {
		return both("web", func() (string, error) { return c.from(c.nodes[0], "get", "http://web/") })
	}); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d pods", len(strings.Fields(before))), nil
}

func (c *cluster) agentsComeBack() (string, error) {
	if _, err := c.kubectl("delete", "pod", "-n", "kube-system", "-l", "app.kubernetes.io/name=antrail", "--wait=true"); err != nil {
		return "", err
	}
	if err := c.allReady(); err != nil {
		return "", err
	}
	if _, err := c.podToPod(); err != nil {
		return "", err
	}
	_, err := c.clusterIP()
	return "both at once", err
}

// agents are the names of the agents' pods.
func (c *cluster) agents() ([]string, error) {
	said, err := c.kubectl("get", "pod", "-n", "kube-system", "-l", "app.kubernetes.io/name=antrail", "--field-selector", "status.phase=Running", "-o", "jsonpath={.items[*].metadata.name}")
	return strings.Fields(said), err
}

func (c *cluster) live() (string, error) {
	agents, err := c.agents()
	if err != nil {
		return "", err
	}
	for _, pod := range agents {
		said, err := c.kubectl("exec", "-n", "kube-system", pod, "--", "/usr/local/bin/antrail", "check", "--live")
		if err != nil {
			return "", fmt.Errorf("%s: %w\n%s", pod, err, said)
		}
	}
	return strings.Join(agents, " "), nil
}
