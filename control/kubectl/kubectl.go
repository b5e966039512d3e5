// Package kubectl is the back end of the kubectl plugin. It finds the agent of a Node through
// the API server, and runs a command in the agent's container, as kubectl exec does.
package kubectl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	constants "k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
)

// agentLabel and agentContainer are as in the manifests in deploy.
const (
	agentLabel     = "app.kubernetes.io/name=antrail"
	agentContainer = "agent"
)

// Cluster is an API server, and the user's credentials for it.
type Cluster struct {
	config     *rest.Config
	core       rest.Interface
	parameters runtime.ParameterCodec
}

// Connect reads a kubeconfig and makes a Cluster for one of its contexts. If a name is empty,
// kubectl's default applies. Connect sends nothing yet.
func Connect(kubeconfig, kubeContext string) (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: kubeContext}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%w; --kubeconfig FILE or KUBECONFIG names the file, --context one of its contexts", err)
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	config.UserAgent = "kubectl-antrail"
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	core, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return &Cluster{config, core, runtime.NewParameterCodec(scheme)}, nil
}

// Agent is the Pod of an agent.
type Agent struct {
	Node            string
	namespace, name string
	container       string
}

// Agents returns the running agents of a namespace, sorted by Node. An empty namespace means all.
func (c *Cluster) Agents(ctx context.Context, namespace string) (all []Agent, err error) {
	var pods corev1.PodList
	err = c.core.Get().Resource("pods").Namespace(namespace).
		VersionedParams(&metav1.ListOptions{LabelSelector: agentLabel}, c.parameters).Do(ctx).Into(&pods)
	if err != nil {
		return nil, fmt.Errorf("the agents of %s: %w", c.config.Host, err)
	}
	name, value, _ := strings.Cut(agentLabel, "=")
	for i := range pods.Items {
		p := &pods.Items[i]
		if p.Labels[name] == value && p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			all = append(all, Agent{p.Spec.NodeName, p.Namespace, p.Name, containerOf(p)})
		}
	}
	slices.SortFunc(all, func(a, b Agent) int { return strings.Compare(a.Node+"/"+a.name, b.Node+"/"+b.name) })
	return all, nil
}

// containerOf is the agent's container, or the first one if the Pod has other manifests.
func containerOf(p *corev1.Pod) string {
	for i := range p.Spec.Containers {
		if p.Spec.Containers[i].Name == agentContainer {
			return agentContainer
		}
	}
	return p.Spec.Containers[0].Name
}

// NodeOf is the Node of a Pod, given as NAMESPACE/NAME.
func (c *Cluster) NodeOf(ctx context.Context, pod string) (string, error) {
	namespace, name, two := strings.Cut(pod, "/")
	if !two {
		return "", fmt.Errorf("%q is not NAMESPACE/NAME of a Pod", pod)
	}
	var p corev1.Pod
	if err := c.core.Get().Resource("pods").Namespace(namespace).Name(name).Do(ctx).Into(&p); err != nil {
		return "", fmt.Errorf("pod %s: %w", pod, err)
	}
	if p.Spec.NodeName == "" {
		return "", fmt.Errorf("pod %s is on no Node yet", pod)
	}
	return p.Spec.NodeName, nil
}

// Choose returns the agent of a Node. Without a Node it returns the only agent.
func Choose(all []Agent, node string) (*Agent, error) {
	var nodes []string
	for i := range all {
		if all[i].Node == node || node == "" && len(all) == 1 {
			return &all[i], nil
		}
		nodes = append(nodes, all[i].Node)
	}
	switch {
	case len(all) == 0:
		return nil, fmt.Errorf("no pod with the label %s runs: is antrail installed, and may you list pods in its namespace (--agent-namespace)?", agentLabel)
	case node == "":
		return nil, fmt.Errorf("--node is missing: there are agents on %s", strings.Join(slices.Compact(nodes), ", "))
	}
	return nil, fmt.Errorf("no agent runs on Node %q; there are agents on %s", node, strings.Join(slices.Compact(nodes), ", "))
}

// Run runs a command in an agent's container and copies its output. The code is the command's
// exit code. When ctx ends, the connection ends, and so does a command that still writes.
func (c *Cluster) Run(ctx context.Context, a *Agent, command []string, stdout, stderr io.Writer) (code int, err error) {
	url := c.core.Post().Resource("pods").Namespace(a.namespace).Name(a.name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: a.container, Command: command, Stdout: true, Stderr: true}, c.parameters).URL()
	stream, err := remotecommand.NewWebSocketExecutorForProtocols(c.config, "GET", url.String(), constants.StreamProtocolV5Name, constants.StreamProtocolV4Name)
	if err != nil {
		return 0, err
	}
	err = stream.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: stdout, Stderr: stderr})
	var ended exec.CodeExitError
	switch {
	case errors.As(err, &ended):
		return ended.Code, nil
	case err != nil:
		return 0, fmt.Errorf("in pod %s/%s: %w", a.namespace, a.name, err)
	}
	return 0, nil
}
