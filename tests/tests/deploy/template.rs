//! The template, read: CloudFormation's short forms (`!Ref x`) are their long ones (`{ "Ref": "x" }`).

use serde_json::{Map, Value, json};
use serde_yaml_ng::Value as Yaml;

const TEMPLATE: &str = include_str!("../../../infra/template.yaml");

/// The template.
pub(crate) fn template() -> Value {
    json_of(serde_yaml_ng::from_str(TEMPLATE).unwrap())
}

fn json_of(yaml: Yaml) -> Value {
    match yaml {
        Yaml::Null => Value::Null,
        Yaml::Bool(value) => value.into(),
        Yaml::Number(number) => serde_json::to_value(number).unwrap(),
        Yaml::String(text) => text.into(),
        Yaml::Sequence(members) => members.into_iter().map(json_of).collect(),
        Yaml::Mapping(members) => {
            let member = |(key, value): (Yaml, Yaml)| (key.as_str().unwrap().to_owned(), json_of(value));
            Value::Object(members.into_iter().map(member).collect::<Map<_, _>>())
        }
        Yaml::Tagged(tagged) => {
            let name = tagged.tag.to_string();
            let name = name.trim_start_matches('!');
            let long = if name == "Ref" || name == "Condition" { name.to_owned() } else { format!("Fn::{name}") };
            json!({ long: json_of(tagged.value) })
        }
    }
}

/// The resources of this type, by their logical names.
pub(crate) fn resources<'a>(template: &'a Value, of_type: &str) -> Vec<(&'a str, &'a Value)> {
    let all = template["Resources"].as_object().unwrap().iter();
    let found: Vec<_> =
        all.filter(|(_, it)| it["Type"] == of_type).map(|(name, it)| (name.as_str(), &it["Properties"])).collect();
    assert!(!found.is_empty(), "there is no {of_type}");
    found
}

/// The logical name that a `Ref` or a `GetAtt` is about.
pub(crate) fn named(value: &Value) -> &str {
    let text = value["Ref"].as_str().or_else(|| value["Fn::GetAtt"].as_str());
    text.unwrap_or_else(|| panic!("{value} names nothing")).split('.').next().unwrap()
}

/// The texts of an array of texts.
pub(crate) fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

/// A number, also one that is written as a text.
pub(crate) fn number(value: &Value) -> i64 {
    value.as_i64().or_else(|| value.as_str()?.parse().ok()).unwrap_or_else(|| panic!("{value} isn't a number"))
}

/// What is named in the template can be referred to: resources, parameters, and CloudFormation's own.
pub(crate) fn assert_refers(template: &Value, name: &str) {
    let name = name.split('.').next().unwrap();
    let known =
        name.starts_with("AWS::") || ["Resources", "Parameters"].iter().any(|part| !template[part][name].is_null());
    assert!(known, "{name} is neither a resource nor a parameter");
}
