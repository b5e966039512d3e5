package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// The name server of the demo, for NAME.NAMESPACE.svc.cluster.local. It asks the API server for
// each question. It has no cache, no zone transfers and no IPv6; other names do not exist.

const (
	domain  = ".svc.cluster.local."
	account = "/var/run/secrets/kubernetes.io/serviceaccount/"
	ttl     = 5
)

// api sends requests to the API server as the pod's account.
type api struct {
	base  string
	token string
	http.Client
}

func newAPI() (*api, error) {
	token, err := os.ReadFile(account + "token")
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(account + "ca.crt")
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("no certificate in ca.crt")
	}
	a := &api{base: "https://" + net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")), token: string(token)}
	a.Timeout = waitAtMost
	a.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	return a, nil
}

func (a *api) get(path string, into any) error {
	r, err := http.NewRequest("GET", a.base+path, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+a.token)
	answer, err := a.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, answer.Status)
	}
	return json.NewDecoder(answer.Body).Decode(into)
}

// service is the answer for a Service's name: addresses, or another name.
func (a *api) service(name, namespace string) (addresses []netip.Addr, alias string, err error) {
	var s struct {
		Spec struct{ ClusterIP, ExternalName string }
	}
	if err := a.get("/api/v1/namespaces/"+namespace+"/services/"+name, &s); err != nil {
		return nil, "", err
	}
	if s.Spec.ClusterIP != "None" && s.Spec.ClusterIP != "" {
		ip, err := netip.ParseAddr(s.Spec.ClusterIP)
		return []netip.Addr{ip}, "", err
	}
	if s.Spec.ExternalName != "" {
		return nil, s.Spec.ExternalName, nil
	}
	addresses, err = a.endpoints(name, namespace)
	return addresses, "", err
}

// endpoints are the addresses of a headless Service.
func (a *api) endpoints(name, namespace string) (all []netip.Addr, err error) {
	var slices struct {
		Items []struct {
			Endpoints []struct{ Addresses []netip.Addr }
		}
	}
	err = a.get("/apis/discovery.k8s.io/v1/namespaces/"+namespace+"/endpointslices?labelSelector=kubernetes.io/service-name="+name, &slices)
	for _, s := range slices.Items {
		for _, e := range s.Endpoints {
			all = append(all, e.Addresses...)
		}
	}
	return all, err
}

func serveDNS() error {
	a, err := newAPI()
	if err != nil {
		return err
	}
	c, err := net.ListenPacket("udp", ":53")
	if err != nil {
		return err
	}
	stopOnSignal()
	for b := make([]byte, 1500); ; {
		n, from, err := c.ReadFrom(b)
		if err != nil {
			return err
		}
		if answer, err := a.answer(b[:n]); err == nil {
			c.WriteTo(answer, from)
		}
	}
}

// answer answers one question.
func (a *api) answer(query []byte) ([]byte, error) {
	var q dnsmessage.Message
	if err := q.Unpack(query); err != nil {
		return nil, err
	}
	if len(q.Questions) != 1 {
		return nil, errors.New("not one question")
	}
	m := dnsmessage.Message{Questions: q.Questions}
	m.Header = dnsmessage.Header{ID: q.ID, Response: true, Authoritative: true, RecursionDesired: q.RecursionDesired}
	m.Answers, m.RCode = a.records(q.Questions[0])
	return m.Pack()
}

// records are the DNS records of a name.
func (a *api) records(q dnsmessage.Question) (all []dnsmessage.Resource, code dnsmessage.RCode) {
	of, ours := strings.CutSuffix(strings.ToLower(q.Name.String()), domain)
	name, namespace, ok := strings.Cut(of, ".")
	if !ours || !ok {
		return nil, dnsmessage.RCodeNameError
	}
	addresses, alias, err := a.service(name, namespace)
	if err != nil {
		return nil, dnsmessage.RCodeNameError
	}
	if alias != "" {
		to, err := dnsmessage.NewName(alias + ".")
		if err != nil {
			return nil, dnsmessage.RCodeServerFailure
		}
		all = append(all, record(q.Name, dnsmessage.TypeCNAME, &dnsmessage.CNAMEResource{CNAME: to}))
		more, _ := a.records(dnsmessage.Question{Name: to, Type: q.Type})
		return append(all, more...), dnsmessage.RCodeSuccess
	}
	for _, ip := range addresses {
		if ip.Is4() && q.Type == dnsmessage.TypeA {
			all = append(all, record(q.Name, dnsmessage.TypeA, &dnsmessage.AResource{A: ip.As4()}))
		}
	}
	return all, dnsmessage.RCodeSuccess
}

func record(name dnsmessage.Name, t dnsmessage.Type, body dnsmessage.ResourceBody) dnsmessage.Resource {
	return dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: name, Type: t, Class: dnsmessage.ClassINET, TTL: ttl}, Body: body}
}
