package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// state is everything that antrail may change on a Node: links, addresses, routes, rules,
// nftables, sysctls, XDP programs (on the lines of links), and files.
func (n *node) state() (string, error) {
	const look = `ip -o link; ip -o address; ip route show table all; ip -6 route show table all; ip rule; ip -6 rule; ip neighbour show nud permanent
nft list ruleset
grep -rs . /proc/sys/net/ipv4 /proc/sys/net/ipv6 | sort
find /etc/cni/net.d /opt/cni/bin -mindepth 1 | sort
[ ! -e /run/antrail ] || find /run/antrail -mindepth 1`
	said, err := output(n.inside("sh", "-c", look)...)
	if err != nil {
		return "", fmt.Errorf("%s: %w", n.name, err)
	}
	return said, nil
}

// settle records the state of the Node, once its addresses are no longer tentative and the state
// is stable.
func (n *node) settle() error {
	now, err := n.state()
	if err == nil && (now != n.before || strings.Contains(now, "tentative")) {
		err = errors.New("it still changes")
	}
	n.before = now
	return err
}

// uninstall removes pods, agents and their remains, as an operator does. It compares each Node
// with its state before.
func (c *cluster) uninstall(ctx context.Context) error {
	for _, args := range [][]string{
		append([]string{"delete", "deployment", "--wait=true", "--cascade=foreground"}, deployments...),
		{"delete", "pod", "--all", "--wait=true"},
		{"delete", "-k", c.file("kustomize"), "--wait=true"},
		{"wait", "-n", "kube-system", "--for=delete", "pod", "-l", "app.kubernetes.io/name=antrail", "--timeout=180s"},
		{"apply", "-k", c.file("kustomize/uninstall")},
		{"rollout", "status", "-n", "kube-system", "daemonset/antrail-uninstall", "--timeout=180s"},
		{"delete", "-k", c.file("kustomize/uninstall"), "--wait=true"},
	} {
		if _, err := c.kubectl(args...); err != nil {
			return err
		}
	}
	for _, n := range c.nodes {
		if err := wait(ctx, n.name+" is not as it was", n.sameAsBefore); err != nil {
			return err
		}
	}
	fmt.Println("uninstalled: links, addresses, routes, rules, nftables, sysctls and files of both Nodes are as they were")
	return nil
}

func (n *node) sameAsBefore() error {
	now, err := n.state()
	if err == nil && now != n.before {
		err = fmt.Errorf("only before:\n%s\nonly now:\n%s", without(n.before, now), without(now, n.before))
	}
	return err
}

// without is the lines of one text that another lacks.
func without(text, other string) string {
	has := map[string]bool{}
	for line := range strings.Lines(other) {
		has[line] = true
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !has[line] {
			b.WriteString(line)
		}
	}
	return b.String()
}

// leftovers looks for anything of the demo on the machine.
func (c *cluster) leftovers() error {
	var errs []error
	for _, path := range []string{c.dir, netnsPath(controlNS), netnsPath(c.nodes[0].name), netnsPath(c.nodes[1].name)} {
		if _, err := os.Stat(path); err == nil {
			errs = append(errs, fmt.Errorf("%s is still there", path))
		}
	}
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil {
		return err
	}
	if strings.Contains(string(mounts), c.dir) {
		errs = append(errs, fmt.Errorf("something is still mounted at %s", c.dir))
	}
	return errors.Join(errs...)
}
