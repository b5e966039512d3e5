package main

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

//go:embed objects
var objects embed.FS

// kubectl runs kubectl and returns its output without the last line end.
func (c *cluster) kubectl(args ...string) (string, error) {
	return c.kubectlWith("", args...)
}

// kubectlWith runs kubectl with a standard input.
func (c *cluster) kubectlWith(input string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	cmd := c.kubectlCommand(ctx, args...)
	cmd.Stdin = strings.NewReader(input)
	var said, wrong bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &wrong
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(wrong.Bytes()))
	}
	return strings.TrimSpace(said.String()), nil
}

// kubectlCommand is a kubectl command, not yet started.
func (c *cluster) kubectlCommand(ctx context.Context, args ...string) *exec.Cmd {
	argv := inControl(append([]string{c.bin + "/kubectl", "--kubeconfig", c.kubeconfig()}, args...)...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "HOME="+c.dir)
	return cmd
}

// overlay is the cluster's change to the Kustomize base. The agent reaches the API server by its
// own address, because no kube-proxy serves its Service to the Nodes.
const overlay = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [base]
patches:
  - target: {kind: DaemonSet, name: antrail}
    patch: |
      - {op: add, path: /spec/template/spec/containers/1/env/-, value: {name: KUBERNETES_SERVICE_HOST, value: ` + controlIP + `}}
      - {op: add, path: /spec/template/spec/containers/1/env/-, value: {name: KUBERNETES_SERVICE_PORT, value: "` + apiPort + `"}}
`

// installAntrail applies the manifests as an operator does, and waits until every
// Node is Ready.
func (c *cluster) installAntrail(ctx context.Context) error {
	if err := os.CopyFS(c.file("kustomize"), os.DirFS(c.manifests)); err != nil {
		return err
	}
	if err := os.WriteFile(c.file("kustomize/kustomization.yaml"), []byte(overlay), 0o600); err != nil {
		return err
	}
	if _, err := c.kubectl("apply", "-k", c.file("kustomize")); err != nil {
		return err
	}
	return c.allReady()
}

// allReady waits for the DaemonSet and the Nodes.
func (c *cluster) allReady() error {
	if _, err := c.kubectl("rollout", "status", "-n", "kube-system", "daemonset/antrail", "--timeout=180s"); err != nil {
		return err
	}
	_, err := c.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=180s")
	return err
}

// applyObjects applies objects/*.yaml and waits for their pods.
func (c *cluster) applyObjects(ctx context.Context) error {
	names, err := objects.ReadDir("objects")
	if err != nil {
		return err
	}
	for _, f := range names {
		text, err := objects.ReadFile("objects/" + f.Name())
		if err != nil {
			return err
		}
		if _, err := c.kubectlWith(string(text), "apply", "-f", "-"); err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
	}
	if _, err := c.kubectl("patch", "service", "balanced", "--subresource=status", "--type=merge", "-p",
		`{"status":{"loadBalancer":{"ingress":[{"ip":"192.168.77.150"}]}}}`); err != nil {
		return err
	}
	for _, address := range []string{"192.168.77.150", "192.168.77.200"} { // routed to the first Node
		if err := command("ip", "-n", controlNS, "route", "add", address+"/32", "via", c.nodes[0].ip); err != nil {
			return err
		}
	}
	return c.rolledOut()
}

// deployments are the Deployments of objects/.
var deployments = []string{"web", "client", "dns", "quiet"}

func (c *cluster) rolledOut() error {
	for _, d := range deployments {
		if _, err := c.kubectl("rollout", "status", "deployment/"+d, "--timeout=180s"); err != nil {
			return err
		}
	}
	return nil
}

// pod is a pod of a Deployment on a Node.
func (c *cluster) pod(app string, n *node) (name, ip string, err error) {
	said, err := c.kubectl("get", "pod", "-l", "app="+app, "--field-selector", "status.phase=Running,spec.nodeName="+n.name,
		"-o", `jsonpath={range .items[*]}{.metadata.name} {.status.podIP} {.metadata.deletionTimestamp}{"\n"}{end}`)
	for line := range strings.Lines(said) {
		if f := strings.Fields(line); len(f) == 2 {
			return f[0], f[1], err
		}
	}
	if err == nil {
		err = fmt.Errorf("no pod of %s runs on %s", app, n.name)
	}
	return "", "", err
}

// from runs the pods' program in the client pod of a Node.
func (c *cluster) from(n *node, args ...string) (string, error) {
	name, _, err := c.pod("client", n)
	if err != nil {
		return "", err
	}
	return c.kubectl(append([]string{"exec", name, "--", "/pod"}, args...)...)
}

// outside runs the pods' program on the underlay, with the address controlIP.
func (c *cluster) outside(args ...string) (string, error) {
	return output(inControl(append([]string{c.options.pod}, args...)...)...)
}

// onNode runs the pods' program on a Node itself.
func (c *cluster) onNode(n *node, args ...string) (string, error) {
	return output(n.inside(append([]string{c.options.pod}, args...)...)...)
}

func output(argv ...string) (string, error) {
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	said := strings.TrimSpace(string(out))
	if err != nil {
		err = fmt.Errorf("%s: %w", said, err)
	}
	return said, err
}

// tellAgents prints the pods and the end of the agents' logs, which are files of the Nodes.
func (c *cluster) tellAgents(w io.Writer) {
	for _, what := range []string{"pods", "events"} {
		if said, err := c.kubectl("get", what, "-A", "-o", "wide"); err == nil {
			fmt.Fprintln(w, said)
		}
	}
	logs, _ := filepath.Glob(c.file("antrail-demo-*/pod-logs/kube-system_antrail*/*/*.log"))
	for _, name := range logs {
		if text, err := os.ReadFile(name); err == nil {
			fmt.Fprintf(w, "---- %s\n%s\n", name, text[max(0, len(text)-6000):])
		}
	}
}
