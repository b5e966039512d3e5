package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
)

// Checks of Antrea's own kinds. The kinds are defined while the agents run, and only the agents
// read their objects. The demo writes an Egress' Node into its status, as Antrea's controller
// would.

const rejectClient = `{"apiVersion": "crd.antrea.io/v1beta1", "kind": "ClusterNetworkPolicy", "metadata": {"name": "reject-client"},
"spec": {"priority": 1, "tier": "emergency", "appliedTo": [{"podSelector": {"matchLabels": {"app": "web"}}}],
"ingress": [{"name": "FromClient", "action": "Reject", "from": [{"podSelector": {"matchLabels": {"app": "client"}}}]}]}}`

const (
	egressAddress = "192.168.77.210"
	egressClient  = `{"apiVersion": "crd.antrea.io/v1beta1", "kind": "Egress", "metadata": {"name": "client"},
"spec": {"appliedTo": {"podSelector": {"matchLabels": {"app": "client"}}}, "egressIP": "` + egressAddress + `"}}`
)

// define adds a kind of Antrea's to the API server.
func (c *cluster) define(plural string) error {
	if _, err := c.kubectl("apply", "-f", c.manifests+"/../crds/"+plural+".yaml"); err != nil {
		return err
	}
	_, err := c.kubectl("wait", "--for=condition=Established", "crd/"+plural+".crd.antrea.io", "--timeout=30s")
	return err
}

// rejected checks a Reject rule: a client gets an answer, not a timeout.
func (c *cluster) rejected() (string, error) {
	if err := c.define("clusternetworkpolicies"); err != nil {
		return "", err
	}
	if _, err := c.kubectlWith(rejectClient, "apply", "-f", "-"); err != nil {
		return "", err
	}
	get := func() error { _, err := c.from(c.nodes[0], "get", "http://web/"); return err }
	err := wait(context.Background(), "with the policy", func() error {
		for _, n := range c.nodes {
			_, ip, err := c.pod("web", n)
			if err != nil {
				return err
			}
			if _, err = c.from(c.nodes[0], "get", "http://"+ip+":8080/"); err == nil || !strings.Contains(err.Error(), "connection refused") {
				return fmt.Errorf("a client is not refused on %s: %v", n.name, err)
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if _, err := c.kubectl("delete", "clusternetworkpolicy", "reject-client"); err != nil {
		return "", err
	}
	return "connection refused, by both Nodes", wait(context.Background(), "without the policy", get)
}

// egress sends requests from pods of both Nodes to a server outside, which returns the source
// address.
func (c *cluster) egress() (string, error) {
	if err := c.define("egresses"); err != nil {
		return "", err
	}
	if _, err := c.kubectlWith(egressClient, "apply", "-f", "-"); err != nil {
		return "", err
	}
	status := fmt.Sprintf(`{"status": {"egressNode": %q, "egressIP": %q}}`, c.nodes[0].name, egressAddress)
	if _, err := c.kubectl("patch", "egress", "client", "--subresource=status", "--type=merge", "-p", status); err != nil {
		return "", err
	}
	if _, err := c.start("outside", "", inControl(c.options.pod, "serve")...); err != nil {
		return "", err
	}
	seen := func(want bool) error {
		for _, n := range c.nodes {
			said, err := c.from(n, "get", "http://"+net.JoinHostPort(controlIP, "8080")+"/")
			if err != nil {
				return err
			}
			if strings.HasSuffix(said, " "+egressAddress) != want {
				return errors.New("a client of " + n.name + " has the source " + said)
			}
		}
		return nil
	}
	if err := wait(context.Background(), "with the Egress", func() error { return seen(true) }); err != nil {
		return "", err
	}
	if _, err := c.kubectl("delete", "egress", "client"); err != nil {
		return "", err
	}
	return egressAddress + ", on " + c.nodes[0].name, wait(context.Background(), "without the Egress", func() error { return seen(false) })
}
