package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// Connections to an API server. The scheme knows only the three groups that are used. The
// clientsets know all groups and cost tens of megabytes.

// Limits of requests. A watch is one request.
const (
	requestRate  = 50 // a second
	requestBurst = 100
)

// accepted are the formats for built-in types. Protobuf is a third of JSON's size and takes a
// tenth of its time.
const accepted = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON

// connections are clients that share one HTTP connection.
type connections struct {
	host    string
	groups  map[schema.GroupVersion]rest.Interface
	dynamic dynamic.Interface
}

// connect makes clients for a kubeconfig, or for the Pod's own service account.
func connect(kubeconfig string) (*connections, error) {
	var config *rest.Config
	var err error
	if kubeconfig == "" {
		config, err = rest.InClusterConfig()
	} else {
		config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	if errors.Is(err, rest.ErrNotInCluster) {
		err = errors.New("kubeconfig is not given, and this process does not run in a Pod (KUBERNETES_SERVICE_HOST is not set)")
	}
	if err != nil {
		return nil, err
	}
	return connectTo(config)
}

func connectTo(config *rest.Config) (*connections, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = "antrail"
	config.QPS, config.Burst = requestRate, requestBurst
	config.WarningHandler = rest.NoWarnings{}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	c := &connections{host: config.Host, groups: map[schema.GroupVersion]rest.Interface{}}
	codecs, err := published()
	if err != nil {
		return nil, err
	}
	for _, gv := range []schema.GroupVersion{corev1.SchemeGroupVersion, discoveryv1.SchemeGroupVersion, networkingv1.SchemeGroupVersion} {
		if c.groups[gv], err = groupClient(config, client, codecs, gv); err != nil {
			return nil, err
		}
	}
	c.dynamic, err = dynamic.NewForConfigAndClient(config, client)
	return c, err
}

// published makes the codecs of the built-in types that are used.
func published() (serializer.CodecFactory, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, discoveryv1.AddToScheme, networkingv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return serializer.CodecFactory{}, err
		}
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(scheme), nil
}

func groupClient(config *rest.Config, client *http.Client, codecs serializer.CodecFactory, gv schema.GroupVersion) (rest.Interface, error) {
	c := rest.CopyConfig(config)
	c.GroupVersion = &gv
	c.APIPath = "/apis"
	if gv.Group == "" {
		c.APIPath = "/api"
	}
	c.NegotiatedSerializer = codecs.WithoutConversion()
	c.AcceptContentTypes, c.ContentType = accepted, runtime.ContentTypeProtobuf
	return rest.RESTClientForConfigAndClient(c, client)
}

// listWatch lists and watches a resource.
func (c *connections) listWatch(r *resource) *cache.ListWatch {
	if r.example != nil {
		selector := fields.ParseSelectorOrDie(r.selector)
		return cache.NewListWatchFromClient(c.groups[r.gvk.GroupVersion()], r.plural, metav1.NamespaceAll, selector)
	}
	of := c.dynamic.Resource(r.gvr())
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return of.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			return of.Watch(ctx, o)
		},
	}
}

// node reads a Node by a list, because the watch of Nodes needs that right anyway.
func (c *connections) node(ctx context.Context, name string) (*corev1.Node, error) {
	list := &corev1.NodeList{}
	err := c.groups[corev1.SchemeGroupVersion].Get().Resource("nodes").
		Param("fieldSelector", fields.OneTermEqualSelector("metadata.name", name).String()).Do(ctx).Into(list)
	if err == nil && len(list.Items) == 0 {
		err = fmt.Errorf("there is no Node/%s", name)
	}
	if err != nil {
		return nil, err
	}
	return &list.Items[0], nil
}

// discover returns the resources that a group serves. A group that does not exist has none.
func (c *connections) discover(ctx context.Context, name string) (served, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var group metav1.APIGroup
	if err := c.getJSON(ctx, "/apis/"+name, &group); err != nil {
		if apierrors.IsNotFound(err) {
			return served{}, nil
		}
		return nil, err
	}
	has := served{}
	for _, v := range group.Versions {
		var list metav1.APIResourceList
		if err := c.getJSON(ctx, "/apis/"+v.GroupVersion, &list); err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			has[v.Version+"/"+r.Name] = true
		}
	}
	return has, nil
}

// getJSON reads a JSON answer.
func (c *connections) getJSON(ctx context.Context, path string, into any) error {
	b, err := c.groups[corev1.SchemeGroupVersion].Get().AbsPath(path).
		SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx).Raw()
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
