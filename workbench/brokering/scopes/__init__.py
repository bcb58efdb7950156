"""Scopes: who may see whom (Fiege, Mezini, Mühl, Buchmann: Engineering Event-Based Systems with Scopes, 2002).

graph        components, scopes, membership, visibility     definition   deliveries, by enumerating paths: the judge
interfaces   what may cross a boundary                      adapters     the efficient form of section 4
mappings     what it becomes on the way                     scoped       a scenario under a graph is a scenario
policies     when, where and to whom it is sent             transmission policies as a last stage over timelines
why          what stopped or changed a notification         market       the paper's stock application
"""
